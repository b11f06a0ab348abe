from msgspec import structs
from savings import levers, seconds
from tasks import call, tool

from headway.core.span import Span, ToolUse
from headway.trace.sources.digests import part
from headway.trace.whatif import what_if
from headway.trace.whatif_text import parse


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


def test_where_nothing_tells_how_tools_share_a_gap_no_saving_is_made_up_and_that_is_said() -> None:
    shared = [tool(name, 1, 7, by="a", inferred=True) for name in "tuv"]
    spans = [call("a", 0, 1, asks=("1", "2", "3")), *shared, call("b", 7, 8)]
    assert "tools in parallel" not in seconds(spans)
    more = [call("c", 8, 9, asks=("1", "2")), tool("x", 9, 10, by="c"), tool("y", 10, 12, by="c"), call("d", 12, 13)]
    assert seconds([*spans, *more])["tools in parallel"] == 1
    assumes = levers([*spans, *more])["tools in parallel"].assumes
    assert "3 tools share gaps with others and nothing tells how long each took: they stay as they are." in assumes
    assert "upper bound" not in assumes


def test_results_with_times_of_their_own_bound_what_their_tools_can_save_side_by_side() -> None:
    # one after another at most: t 1-1.25, u 1.25-100: the longest is 98.75 of 99
    spans = [
        call("a", 0, 1, asks=("1", "2")),
        tool("t", 1, 1.25, by="a", inferred=True),
        tool("u", 1, 100, by="a", inferred=True),
        call("b", 100, 101),
    ]
    assert seconds(spans)["tools in parallel"] == 0.25
    assert "An upper bound: where only results were timed" in levers(spans)["tools in parallel"].assumes


def test_results_that_were_written_down_together_do_not_tell_when_their_tools_ended() -> None:
    ends = {"t": 2.0, "u": 9.0, "v": 9.001}
    spans = [call("a", 0, 1), *(tool(name, 1, end, by="a", inferred=True) for name, end in ends.items())]
    assert "tools in parallel" not in seconds([*spans, call("b", 9.001, 10)])


def test_a_night_between_two_calls_is_no_tool_that_can_be_made_faster() -> None:
    spans: list[Span] = []
    at = 0.0
    for turn in range(6):  # a call of 1 s each, and gaps of 1 s, one of them 1,000 s
        spans.append(call(f"c{turn}", at, at + 1, asks=(f"{turn}",)))
        gap = 1000.0 if turn == 3 else 1.0
        spans.append(tool(f"t{turn}", at + 1, at + 1 + gap, by=f"c{turn}", inferred=True))
        at += 1 + gap
    spans.append(call("end", at, at + 1))
    assert seconds(spans)["tools twice as fast"] == 2.5  # half of five gaps of 1 s
    assert "One gap of 1,000 s between two calls stays as recorded" in levers(spans)["tools twice as fast"].assumes
    outcome = what_if(spans, parse("tools 0.5x, tool:look 0.5x"))
    assert outcome.after == outcome.before - 3.75
    assert any("One gap of 1,000 s" in note for note in outcome.notes)
    assert seconds([_with_result(one) if one.id == "t3" else one for one in spans])["tools twice as fast"] == 502.5


def _with_result(one: Span) -> Span:
    """The tool was at work until its result came."""
    assert isinstance(one.work, ToolUse)
    return structs.replace(one, work=structs.replace(one.work, result=part("tool", "done")))


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
