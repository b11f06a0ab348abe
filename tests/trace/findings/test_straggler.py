import pytest
from findings import found, used
from tasks import call, step, tool

from headway.core.span import Span

#  a 0-1, then four tools from 1 on that take 2, 2, 3 and 8 s; b 9-10
OTHERS = [tool("t", 1, 3, by="a"), tool("u", 1, 3, by="a"), tool("v", 1, 4, by="a")]


def fan(*branches: Span) -> list[Span]:
    return [call("a", 0, 1), *branches, call("b", 9, 10)]


def test_one_branch_that_all_wait_for() -> None:
    # the next slowest ends at 4, the slow one at 9
    finding = found(fan(*OTHERS, used(tool("slow", 1, 9, by="a"), "crawl")))["straggler"]
    assert finding.seconds == pytest.approx(5)
    assert finding.confidence == "certain"
    assert finding.spans[0] == "t"
    assert set(finding.spans) == {"t", "u", "v", "slow"}
    assert finding.title.startswith("4 branches ran side by side, and the task waited 5.00 s (50 % of E2E) for one")
    assert "3.2 times the median of 2.50 s" in finding.evidence[0]


def test_agents_side_by_side_are_branches_too() -> None:
    agents = [step(str(i), 0, end, "root", agent="crew") for i, end in enumerate((2, 2, 2, 9))]
    calls = [call(f"c{i}", 0, end, str(i)) for i, end in enumerate((2, 2, 2, 9))]
    finding = found([step("root", 0, 10), *agents, *calls, call("sum", 9, 10, "root")])["straggler"]
    assert finding.seconds == pytest.approx(7)


def test_branches_that_take_equally_long() -> None:
    assert "straggler" not in found(fan(*OTHERS, tool("w", 1, 4.5, by="a")))


def test_of_two_neither_is_the_straggler() -> None:
    assert "straggler" not in found(fan(OTHERS[0], tool("slow", 1, 9, by="a")))


def test_tools_one_after_another_are_no_fan_out() -> None:
    assert "straggler" not in found(fan(tool("t", 1, 2), tool("u", 2, 3), tool("v", 3, 4), tool("w", 4, 9)))


def test_a_straggler_that_nothing_waits_for() -> None:
    beside = [step("root", 0, 20), call("long", 0, 20, "root"), *OTHERS, tool("slow", 1, 9, "root")]
    assert "straggler" not in found(beside)


def test_branches_that_were_not_timed_where_they_ran() -> None:
    branches = fan(*OTHERS, tool("slow", 1, 9, by="a"))
    assert "straggler" not in found(branches, "messages")
    assert "straggler" not in found(branches, "none")
    assert "straggler" not in found(fan(*OTHERS, tool("slow", 1, 9, by="a", inferred=True)))
