from itertools import count

import msgspec
import pytest
from tasks import T0, call, step, tool

from headway.core.money import MicroUsd
from headway.core.span import ModelCall, Span, ToolUse
from headway.core.spent import Sum
from headway.core.usage import Usage
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.phases import Phase
from headway.trace.sets import anatomy_of
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge

USAGE = Usage(input_tokens=1000, output_tokens=10, cache_read=600)


def free(_call: ModelCall, _at: float) -> None:
    """No price is known."""


def facts(*spans: Span, timing: Timing = "spans") -> TaskFacts:
    return facts_of(spans, judge(spans, "made", timing), title="why is it slow?", prices=free)


def two_turns() -> list[Span]:
    """1 s of reading and 1 of writing, 4 s of tool, then 0.5 and 0.5; 0.25 s of hop before each call."""
    return [
        step("task", 0, 7.5, agent="helper"),
        call("c1", 0.25, 2.25, "task", marks=(0.25, 1.25, 2.25), asks=("t1",), usage=USAGE),
        tool("t1", 2.25, 6.25, "task", by="c1", call_id="t1"),
        call("c2", 6.5, 7.5, "task", marks=(6.5, 7.0, 7.5), usage=USAGE),
    ]


def test_one_task_becomes_a_row_that_adds_up() -> None:
    row = facts(*two_turns())
    assert (row.e2e, row.n, row.calls, row.failed, row.title) == (7.5, 2, 2, False, "why is it slow?")
    assert row.phases == {Phase.HOP: 0.5, Phase.PREFILL: 1.5, Phase.DECODE: 1.5, Phase.TOOL: 4.0}
    assert row.stages == {"helper": 7.5}
    assert (row.tools["look"].uses, row.tools["look"].seconds, row.tools["look"].on_path) == (1, 4.0, 4.0)
    assert (row.models["m"].calls, row.models["m"].on_path, row.models["m"].spent.input_tokens) == (
        2,
        3.0,
        Sum(2000, 2, 2),
    )
    assert row.task_ttft == 7.0  # the answer's first token
    assert [(point.input_tokens, point.cache_read, point.ttft) for point in row.points] == [
        (1000, 600, 1.0),
        (1000, 600, 0.5),
    ]
    assert row.spent.cost.least is None  # no price is known
    assert row.started_at == T0


def test_how_long_a_tool_takes_is_the_mean_of_the_uses_that_tell() -> None:
    # 4 s; one without an end; two that share a gap of 3 s; then half a second
    shared = [tool(name, 8, 11, "task", by="c", inferred=True) for name in ("s1", "s2")]
    timed = [call("c", 7, 8, "task"), tool("a", 1, 5, "task"), tool("b", 5, None, "task"), tool("d", 11, 11.5, "task")]
    rows = [facts(step("task", 0, 12), *timed, *shared)]
    assert (rows[0].tools["look"].uses, rows[0].tools["look"].timed, rows[0].tools["look"].seconds) == (5, 2, 4.5)
    assert anatomy_of(rows).tools[0].seconds == 2.25
    untimed = facts(step("task", 0, 12), *timed, timing="none")
    assert (untimed.tools["look"].uses, untimed.tools["look"].timed) == (3, 0)
    assert anatomy_of([untimed]).tools[0].seconds is None
    assert anatomy_of([*rows, untimed]).tools[0].seconds == 2.25
    lasted = facts(step("task", 0, 12), *timed, timing="durations")  # which are known, though not when they were
    assert (lasted.tools["look"].timed, lasted.tools["look"].seconds) == (2, 4.5)


def test_what_has_no_times_has_no_seconds() -> None:
    row = facts(call("c", 0, 0, usage=USAGE), timing="none")
    assert (row.e2e, row.phases, row.stages, row.task_ttft, row.points) == (None, {}, {}, None, ())
    assert (row.n, row.spent.input_tokens.exact) == (1, 1000)


def priced(name: str, start: float, parent: str, cost: int | None, **more: object) -> Span:
    made = call(name, start, start + 1, parent, **more)  # pyright: ignore[reportArgumentType] - passed on as it is
    assert isinstance(made.work, ModelCall)
    return msgspec.structs.replace(
        made, work=msgspec.structs.replace(made.work, cost=None if cost is None else MicroUsd(cost))
    )


def failing(name: str, start: float, by: str, *, failed: bool) -> Span:
    made = tool(name, start, start + 1, "task", by=by)
    assert isinstance(made.work, ToolUse)
    return msgspec.structs.replace(made, work=msgspec.structs.replace(made.work, failed=failed, arguments="a" * 16))


def test_a_failed_tool_costs_what_asking_again_cost() -> None:
    row = facts(
        step("task", 0, 6),
        priced("c1", 0, "task", 100),
        failing("t1", 1, "c1", failed=True),
        priced("c2", 2, "task", 250),
        failing("t2", 3, "c2", failed=False),
        priced("c3", 4, "task", 400),
    )
    assert (row.tools["look"].uses, row.tools["look"].failed, row.tools["look"].again) == (2, 1, 1)
    assert row.retries_cost == 250
    assert row.step_costs == (100, 250, 400)


def test_it_is_unknown_what_failed_tools_cost_where_nobody_saw_how_they_ended() -> None:
    calls = [step("task", 0, 4), priced("c1", 0, "task", 100), priced("c2", 3, "task", 100)]
    assert facts(*calls, tool("t", 1, 3, "task", by="c1", inferred=True)).retries_cost is None
    assert facts(*calls, tool("t", 1, 3, "task", by="c1")).retries_cost == 0


def test_what_retries_cost_is_unknown_where_it_is_not_recorded_who_asked_again() -> None:
    again = [failing("t1", 1, "c1", failed=True), failing("t2", 3, "nobody", failed=False)]
    assert facts(step("task", 0, 4), priced("c1", 0, "task", 100), *again).retries_cost is None


def test_what_only_tasks_tell_where_it_can_be_but_nothing_is_unknown_of_the_set() -> None:
    """One task in which no tool failed, one that asked again at an unknown price; of the calls one tells its cache."""
    root = step("task", 0, 4)
    fine = facts(root, priced("c1", 0, "task", None, usage=USAGE), failing("t", 1, "c1", failed=False))
    blind = Usage(input_tokens=1000, output_tokens=10)
    other = facts(
        root,
        priced("c1", 0, "task", None, usage=blind),
        failing("t1", 1, "c1", failed=True),
        priced("c2", 2, "task", None, usage=blind),
        failing("t2", 3, "c2", failed=False),
    )
    assert (fine.retries_cost, fine.recomputed, other.retries_cost, other.recomputed) == (0, 0, None, None)
    made = anatomy_of([fine, other])
    assert (made.retries_cost, made.recomputed) == (None, None)
    alone = anatomy_of([fine])  # nothing is unknown of any task
    assert alone.retries_cost is not None
    assert alone.recomputed is not None


def test_what_retries_cost_is_known_of_tasks_that_tell_whatever_happened() -> None:
    root = step("task", 0, 4)
    calls = [priced("c1", 0, "task", 100), priced("c2", 2, "task", 250)]
    fine = facts(root, *calls, failing("t", 1, "c1", failed=False))
    failed = facts(root, *calls, failing("t1", 1, "c1", failed=True), failing("t2", 3, "c2", failed=False))
    untold = facts(root, *calls, tool("t", 1, 2, "task", by="c1", inferred=True))
    bare = facts(root, *calls)
    found = anatomy_of([fine, failed, untold, bare]).retries_cost
    assert found is not None
    assert (found.known, found.of, found.mean) == (2, 4, 125)


def test_how_many_uses_of_a_tool_failed_is_unknown_where_nobody_saw_how_they_ended() -> None:
    task = step("task", 0, 9)
    lost, seen = tool("t", 1, None, "task"), failing("u", 2, "c", failed=True)
    rows = [facts(task, lost), facts(task, lost, seen), facts(task, seen)]
    found = [anatomy_of([row]).tools[0].failed for row in rows]
    assert found == [Sum(0, 0, 1), Sum(1, 1, 2), Sum(1, 1, 1)]
    assert [(one.exact, one.least) for one in found] == [(None, None), (None, 1), (1, 1)]


def test_what_was_done_again_is_unknown_where_arguments_and_cached_tokens_are_not_recorded() -> None:
    told, untold = failing("t1", 1, "c1", failed=False), tool("t2", 2, 3, "task", by="c1")
    blind = Usage(input_tokens=1000, output_tokens=10)
    alone = facts(step("task", 0, 4), call("c1", 0, 1, "task", usage=blind), untold)
    assert alone.recomputed is None  # what its only call took from a cache is not known
    mixed = facts(step("task", 0, 4), call("c1", 0, 1, "task", usage=USAGE), told, untold)
    assert mixed.recomputed == 0
    assert [anatomy_of([row]).tools[0].again for row in (alone, mixed)] == [Sum(0, 0, 1), Sum(0, 1, 2)]


def test_a_set_is_spread_and_its_tail_told_apart() -> None:
    """Ten tasks of 1 s of model; the slowest has 9 s of tool besides."""
    rows: list[TaskFacts] = []
    names = count()
    for i in range(10):
        length = 10.0 if i == 9 else 1.0
        root = f"r{next(names)}"
        spans = [step(root, 0, length), call(f"c{next(names)}", 0, 1, root, usage=USAGE)]
        if i == 9:
            spans.append(tool(f"t{next(names)}", 1, 10, root))
        rows.append(facts(*spans))
    made = anatomy_of(rows)
    assert made.e2e is not None
    p50, p95, p99 = made.e2e.quantiles
    assert (p50.value, p95.value, made.e2e.mean) == (1.0, 10.0, pytest.approx(1.9))
    assert (p50.supported, p95.supported, p99.supported) == (True, False, False)
    model, looked = sorted(made.phases, key=lambda row: row.name)
    assert (model.name, model.tasks, model.share) == ("model", 10, pytest.approx(10 / 19))
    assert (looked.name, looked.tasks, looked.share) == ("tool", 1, pytest.approx(9 / 19))
    assert (looked.typical, looked.tail) == (0.0, 9.0)
    assert made.histogram == ((1, 10),)
    assert made.spent.cached_share == pytest.approx(0.6)
    assert made.tools[0].seconds == 9.0
    assert made.models[0].spent.input_tokens.exact == 10_000
    assert made.cost is None


def test_untimed_tasks_count_for_tokens_only() -> None:
    made = anatomy_of([facts(*two_turns()), facts(call("c", 0, 0, usage=USAGE), timing="none")])
    assert (made.tasks, made.timed) == (2, 1)
    assert made.input_tokens is not None
    assert made.input_tokens.mean == 1500
    assert made.e2e is not None
    assert made.e2e.mean == 7.5
    assert (made.e2e.known, made.e2e.of) == (1, 2)
    assert made.task_ttft is not None
    assert (made.task_ttft.known, made.task_ttft.of) == (1, 2)
    assert anatomy_of([]).e2e is None
