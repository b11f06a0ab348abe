"""What is read off runs on real replicas."""

from replicas import Run, table, verdicts
from rig.agents import Outcome, Played


def run(policy: str, *seconds: float, computed: int = 100) -> Run:
    calls = tuple(Played(ttft=0.1 * number, computed=computed, prompt=200) for number in range(1, 5))
    outcomes = [Outcome(seconds=each, calls=calls) for each in seconds]
    return Run(policy=policy, agents=len(seconds), load_average=0.0, outcomes=outcomes)


def test_a_run_sums_up_its_tasks_and_calls() -> None:
    one = run("headway", 2.0, 4.0)

    assert (one.mean, one.worst, one.computed) == (3.0, 4.0, 800)
    assert one.ttft(0.5) == 0.1 * 3  # of 0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.4, 0.4 the fifth


def test_the_table_has_medians_over_runs_and_ratios_of_means() -> None:
    # Round robin's means are 10, 20 and 12 s: the median is 12. Headway's is 3: a quarter.
    runs = [run("round-robin", 10.0), run("headway", 3.0), run("round-robin", 20.0), run("round-robin", 12.0)]

    first, second = table(runs).splitlines()[1:]

    assert first.split()[:5] == ["round", "robin", "3", "12.0", "(10.0..20.0)"]
    assert second.split()[:3] == ["Headway", "1", "3.0"]
    assert second.split()[-2:] == ["0.25x", "-"]


def test_each_target_is_told_by_name() -> None:
    full = [run("headway", 3.0, 5.0), run("round-robin", 10.0, 12.0), run("cache-aware", 6.0, 8.0)]
    free = [run("headway", 2.0), run("round-robin", 3.0), run("session-home", 1.0)]

    told = verdicts(full, free)

    assert [line.rpartition(": ")[2] for line in told] == ["over", "over", "PASS", "over"]
    assert told[0].startswith("full fleet, mean task, to round robin's: 0.36, at most 0.3")
    assert told[3].startswith("fleet with room, mean task, to the best of the others: 2.00, at most 1")


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert verdicts([run("headway", 3.0)], []) == []
