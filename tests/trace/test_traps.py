"""Ways to read a trace wrongly that have no other test of their name.

The others are where their treatment is: clocks in `test_skew`, wrappers, waiters and detached work in `test_contract`,
flushes in `test_path` and `sources/test_flush`, hidden retries and visible text in `test_anatomy`, streams that end
early in `sources/test_otlp`, people in `test_tree`, missing TTFT in `test_phases`, sums of parents in
`test_complaints`.
"""

from statistics import mean

import pytest
from msgspec import structs
from tasks import T0, call, step, tool

from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.trace.anatomy import dissect
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.phases import Phase
from headway.trace.sets import anatomy_of
from headway.trace.sources.verdict import judge


def facts(spans: list[Span], number: int = 0) -> TaskFacts:
    own = [structs.replace(span, task=TaskId(f"{number:032x}")) for span in spans]
    return facts_of(own, judge(own, "made", "spans"))


def test_durations_of_spans_that_overlap_are_not_added_up() -> None:
    # Three tools, 3, 4 and 5 s, all from 1 s on: together 12 s, and they kept the task for 5.
    tools = [tool(f"t{length}", 1, 1 + length, "root") for length in (3, 4, 5)]
    row = facts([step("root", 0, 6), call("a", 0, 1, "root"), *tools])
    assert row.e2e == 6
    assert row.phases == {Phase.MODEL: pytest.approx(1), Phase.TOOL: pytest.approx(5)}
    assert row.tools["look"].seconds == pytest.approx(12)
    assert row.tools["look"].on_path == pytest.approx(5)


def test_percentiles_are_not_averaged() -> None:
    # 90 quick tasks and 10 slow ones: the median of all is 1 s, whatever the medians of the two groups are.
    rows = [facts([call("a", 0, 1.0)], i) for i in range(90)] + [
        facts([call("a", 0, 100.0)], 90 + i) for i in range(10)
    ]
    groups = [anatomy_of(rows[:90]), anatomy_of(rows[90:])]
    whole = anatomy_of(rows)
    assert whole.e2e is not None
    p50, p95, _ = (one.value for one in whole.e2e.quantiles)
    assert (p50, p95) == (1.0, 100.0)
    assert mean(one.e2e.quantiles[0].value for one in groups if one.e2e is not None) == 50.5


def test_a_request_that_was_sent_late_is_measured_from_when_it_was_meant_to_be() -> None:
    # It waited 3 s in the queue before it was sent; the engine answered in one. The user waited for four.
    late = call("a", 0, 4, marks=(3, 3.5, 4))
    assert isinstance(late.work, ModelCall)
    anatomy = dissect([structs.replace(late, work=structs.replace(late.work, queued=3.0))])
    assert anatomy.e2e == pytest.approx(4)
    assert anatomy.task_ttft == pytest.approx(3.5)
    assert anatomy.phases[Phase.QUEUE] == pytest.approx(3)
    assert anatomy.started_at == T0
