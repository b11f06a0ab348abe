from savings import levers, seconds
from tasks import call, tool


def test_timed_tools_of_one_response_take_the_longest_of_them() -> None:
    # t 1-3, u 3.5-7, v 7-8 in turn; at once they take 3.5
    spans = [call("a", 0, 1, asks=("1", "2", "3")), tool("t", 1, 3, by="a"), tool("u", 3.5, 7, by="a")]
    spans += [tool("v", 7, 8, by="a"), call("b", 8, 9)]
    assert seconds(spans)["tools in parallel"] == 3.5
    assert "equally long" not in levers(spans)["tools in parallel"].assumes


def test_tools_are_matched_to_their_response_by_the_call_id_of_the_latest_that_issued_it() -> None:
    # the engine uses ids again: t and u are of a, v and w of b
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 2, call_id="1"), tool("u", 2, 3, call_id="2")]
    spans += [
        call("b", 3, 4, asks=("1", "2")),
        tool("v", 4, 6, call_id="1"),
        tool("w", 6, 9, call_id="2"),
        call("c", 9, 10),
    ]
    assert seconds(spans)["tools in parallel"] == 1 + 2


def test_tools_of_different_responses_depend_on_each_other() -> None:
    spans = [
        call("a", 0, 1, asks=("1",)),
        tool("t", 1, 2, by="a"),
        call("b", 2, 3, asks=("2",)),
        tool("u", 3, 4, by="b"),
    ]
    assert "tools in parallel" not in seconds(spans)


def test_tools_that_ran_at_once_already_save_nothing() -> None:
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 3, by="a"), tool("u", 1, 2, by="a"), call("b", 3, 4)]
    assert "tools in parallel" not in seconds(spans)


def test_an_inferred_gap_is_split_evenly_between_its_tools_and_says_so() -> None:
    spans = [
        call("a", 0, 1, asks=("1", "2", "3")),
        *(tool(name, 1, 7, by="a", inferred=True) for name in "tuv"),
        call("b", 7, 8),
    ]
    assert seconds(spans)["tools in parallel"] == 4
    assert "one after another, equally long" in levers(spans)["tools in parallel"].assumes


def test_sub_agents_opened_by_one_response_can_run_at_once() -> None:
    # t with s: 4 s, u with v: 2 s
    spans = [call("a", 0, 1, asks=("1", "2")), tool("t", 1, 5, by="a"), call("s", 1, 5, "t")]
    spans += [tool("u", 5, 7, by="a"), call("v", 5, 7, "u"), call("b", 7, 8)]
    assert seconds(spans)["tools in parallel"] == 2


def test_a_tool_off_the_path_saves_nothing_by_being_faster() -> None:
    spans = [call("a", 0, 1), tool("slow", 1, 5), tool("quick", 1, 3), call("b", 5, 6)]
    assert seconds(spans)["tools twice as fast"] == 2  # slow takes 2 then, as quick would still be waited for: 1
    assert (
        seconds([call("a", 0, 1), tool("quick", 1, 3), call("sub", 1, 5), call("b", 5, 6)]).get("tools twice as fast")
        is None
    )
