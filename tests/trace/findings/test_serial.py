import pytest
from findings import found, used
from tasks import call, tool

#  a 0-1 asks for three tools; 1-4, 4-6, 6-7 one after another; b 7-10
CHAIN = [
    call("a", 0, 1, asks=("1", "2", "3")),
    used(tool("t", 1, 4, by="a"), "read"),
    used(tool("u", 4, 6, by="a"), "read"),
    used(tool("v", 6, 7, by="a"), "list"),
    call("b", 7, 10),
]


def test_tools_of_one_response_that_ran_one_after_another() -> None:
    # at once they take the longest of 3, 2 and 1 s: 3 s less
    finding = found(CHAIN)["serial-tools"]
    assert finding.seconds == pytest.approx(3)
    assert finding.confidence == "likely"
    assert finding.spans == ("t", "u", "v")
    assert finding.evidence[0].startswith("a asked for 3 tools: execute_tool read (2 times), execute_tool list.")
    assert finding.evidence[0].endswith("Together they take 6.00 s, the longest 3.00 s.")


def test_tools_found_by_their_call_id_count_too() -> None:
    asked = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 4, call_id="1"), tool("u", 4, 6, call_id="2")]
    assert found([*asked, call("b", 6, 10)])["serial-tools"].seconds == pytest.approx(2)


def test_tools_that_ran_side_by_side() -> None:
    beside = [CHAIN[0], tool("t", 1, 4, by="a"), tool("u", 1.1, 3, by="a"), call("b", 4, 10)]
    assert "serial-tools" not in found(beside)


def test_tools_of_different_responses_depend_on_each_other() -> None:
    loop = [call("a", 0, 1), tool("t", 1, 4, by="a"), call("b", 4, 5), tool("u", 5, 8, by="b"), call("c", 8, 9)]
    assert "serial-tools" not in found(loop)


def test_tools_that_were_not_timed_where_they_ran_say_nothing_of_their_order() -> None:
    gap = [tool(name, 1, 7, by="a", inferred=True) for name in "tuv"]
    assert "serial-tools" not in found([CHAIN[0], *gap, CHAIN[-1]])
    assert "serial-tools" not in found(CHAIN, "messages")
    assert "serial-tools" not in found(CHAIN, "durations")


def test_tools_that_take_next_to_nothing() -> None:
    quick = [CHAIN[0], tool("t", 1, 1.02, by="a"), tool("u", 1.02, 1.04, by="a"), call("b", 1.04, 10)]
    assert "serial-tools" not in found(quick)
