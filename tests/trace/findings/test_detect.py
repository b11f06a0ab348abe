from findings import found, ranking, records, used
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from savings import priced
from tasks import call, tool

from headway.core.span import Span
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace.findings import findings, set_findings
from headway.trace.sources.source import Timing
from headway.trace.sources.verdict import judge
from headway.trace.study import study


class Row(Struct, frozen=True):
    task: TaskId
    e2e: float | None
    n: int


TIMINGS: list[Timing] = ["spans", "messages", "durations", "none"]


@given(records(), st.sampled_from(TIMINGS))
def test_any_record_gives_findings_that_keep_to_it(spans: list[Span], timing: Timing) -> None:
    e2e = study(spans).e2e
    ids = {span.id for span in spans}
    timed = timing in {"spans", "messages"}
    for finding in findings(spans, judge(spans, "any", timing), prices=priced):
        assert set(finding.spans) <= ids
        assert len(set(finding.spans)) == len(finding.spans)
        assert finding.seconds is None or (timed and 0 <= finding.seconds <= e2e)
        assert finding.tokens is None or finding.tokens >= 0
        assert finding.title.endswith(".")
        assert finding.evidence
        assert finding.check
        assert finding.remedy


def test_no_spans_are_no_findings() -> None:
    assert ranking([]) == []


def test_the_dearest_first_and_what_ails_the_record_last() -> None:
    # tools take 8 of 13 s, a failed one 1 s of them; model time is not split
    spans = [
        call("a", 0, 2),
        used(tool("t", 2, 9, by="a"), "crawl"),
        used(tool("u", 9, 10, by="a"), "fetch", failed=True),
        call("b", 10, 13),
    ]
    assert [finding.name for finding in ranking(spans)] == [
        "tools-dominate",
        "failed-tools",
        "serial-tools",
        "model-time-unsplit",
    ]


def test_money_ranks_beside_time() -> None:
    # a failed tool of 1 s in 10 comes after growth that is nearly all of the cost
    read = (1000, 30_000, 50_000, 70_000)
    calls = [
        call(f"c{i}", 2 * i, 2 * i + 2, usage=Usage(input_tokens=tokens, output_tokens=10, cache_read=tokens // 2))
        for i, tokens in enumerate(read)
    ]
    failing = used(tool("t", 8, 9, by="c3"), "fetch", failed=True)
    named = [finding.name for finding in ranking([*calls, failing], money=True)]
    assert named.index("context-growth") < named.index("failed-tools")


def test_less_than_a_hundredth_is_not_worth_reading() -> None:
    spans = [call("a", 0, 50), used(tool("t", 50, 50.4, by="a"), "fetch", failed=True), call("b", 50.4, 100)]
    assert "failed-tools" not in found(spans)


@given(st.lists(st.tuples(st.none() | st.floats(0, 100), st.integers(0, 60)), max_size=60))
def test_any_set_gives_findings_about_its_tasks(rows: list[tuple[float | None, int]]) -> None:
    tasks = [Row(TaskId(f"{i}"), e2e, n) for i, (e2e, n) in enumerate(rows)]
    longest = max((e2e for e2e, _ in rows if e2e is not None), default=0.0)
    for finding in set_findings(tasks):
        assert finding.seconds is not None
        assert 0 <= finding.seconds <= longest
        assert set(finding.tasks) <= {task.task for task in tasks}


def test_what_the_record_lacks_comes_after_what_is_wrong_with_the_task() -> None:
    # no cost is known of either, and the one is only likely while the other is certain
    spans = [used(tool("t", 0, 0), "read", "a.txt", "text"), used(tool("u", 0, 0), "read", "a.txt", "text")]
    assert [finding.name for finding in ranking(spans, "none")] == ["repeated-tools", "no-times"]
