from msgspec import Struct

from headway.core.task import TaskId
from headway.trace.findings import set_findings


class Row(Struct, frozen=True):
    task: TaskId
    e2e: float | None
    n: int


def rows(*groups: tuple[int, float | None, int]) -> list[Row]:
    """Groups of tasks: how many, E2E, N."""
    tasks = [(e2e, n) for number, e2e, n in groups for _ in range(number)]
    return [Row(TaskId(f"{i:03}"), e2e, n) for i, (e2e, n) in enumerate(tasks)]


def test_the_slowest_tasks_loop_more_often() -> None:
    # 2 s a turn everywhere: 90 tasks of 5 turns, 10 of 40; p90 of N is 5, so p95 would be 10 s
    (finding,) = set_findings(rows((90, 10.0, 5), (10, 80.0, 40)))
    assert finding.name == "iteration-tail"
    assert finding.seconds == 70
    assert finding.confidence == "likely"
    assert finding.title == "p95 is 80.0 s, 8.0 times p50, because the slowest tasks make 40 calls instead of 5."
    assert "N explains 100 % of it" in finding.evidence[1]
    assert len(finding.tasks) == 6  # from the 95th of 100 on
    assert finding.spans == ()


def test_the_slowest_tasks_have_slower_turns() -> None:
    assert set_findings(rows((90, 10.0, 5), (10, 80.0, 6))) == ()


def test_no_tail() -> None:
    assert set_findings(rows((90, 10.0, 5), (10, 15.0, 8))) == ()


def test_nineteen_tasks_have_no_p95() -> None:
    assert set_findings(rows((17, 10.0, 5), (2, 80.0, 40))) == ()


def test_few_tasks_are_less_sure() -> None:
    (finding,) = set_findings(rows((18, 10.0, 5), (2, 80.0, 40)))
    assert finding.confidence == "possible"
    assert finding.evidence[-1] == "Too few tasks to bound p95 on both sides."


def test_tasks_without_times_do_not_count() -> None:
    assert set_findings(rows((90, None, 5), (10, None, 40))) == ()
    assert set_findings([]) == ()


def test_a_limit_that_would_not_help_is_not_asked_for() -> None:
    # more than a tenth makes 40 turns, so p90 of N is 40: a limit there changes nothing
    assert set_findings(rows((80, 10.0, 5), (20, 80.0, 40))) == ()
