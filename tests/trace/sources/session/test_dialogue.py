import pytest
from sessions import at, calls, chats, tools, waits

from headway.core.span import ModelCall, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import part
from headway.trace.sources.session.dialogue import Dialogue, spoken

CALL = ModelCall(model="m", usage=Usage(output_tokens=3))


def test_a_call_runs_from_the_last_that_it_may_answer_to_its_message() -> None:
    dialogue = Dialogue("made", "s", "agent")
    dialogue.user("Do it", 10.0, "u")
    asked = dialogue.call(CALL, spoken("I look.", [("ls", "{}")]), 12.0)
    dialogue.tool(ToolUse(name="ls", issued_by=asked.id, inferred=True), 12.0, 13.0, "a.txt")
    dialogue.call(CALL, "One file.", 15.0)
    (piece,) = dialogue.pieces()
    assert [at(span, piece) for span in piece.spans] == [(0, 5), (0, 2), (2, 3), (3, 5)]
    assert (piece.timing, piece.title, piece.spans[0].session) == ("messages", "Do it", "s")
    said, found = part("assistant", "I look.\nls({})"), part("tool", "a.txt")
    assert [call.prompt for call in calls(piece)] == [(part("user", "Do it"),), (part("user", "Do it"), said, found)]
    assert calls(piece)[0].usage == CALL.usage
    (tool,) = tools(piece)
    assert isinstance(tool.work, ToolUse)
    assert tool.work.result == found


def test_each_message_opens_a_task_but_for_those_that_come_together() -> None:
    dialogue = Dialogue("made", "s", "agent")
    dialogue.user("First", 0.0)
    dialogue.user("and this", 1.0)
    dialogue.call(CALL, "Yes.", 4.0)
    dialogue.user("Second", 60.0)
    dialogue.call(CALL, None, 61.0)
    dialogue.user("Third", 90.0)
    first, second = dialogue.pieces()
    assert dialogue.unanswered == 1
    assert [at(chat, first) for chat in chats(first)] == [(1, 4)]
    assert [at(wait, second) for wait in waits(second)] == [(-56, 0)]
    assert first.task != second.task


def test_a_compacted_history_begins_anew() -> None:
    dialogue = Dialogue("made", "s", "agent")
    dialogue.user("First", 0.0)
    dialogue.forget()
    dialogue.hear("user", "A summary")
    dialogue.call(CALL, "Yes.", 4.0)
    (piece,) = dialogue.pieces()
    assert calls(piece)[0].prompt == (part("user", "A summary"),)


@pytest.mark.parametrize("at", [None, 5.0])
def test_without_a_time_of_the_question_or_the_answer_there_are_none(at: float | None) -> None:
    dialogue = Dialogue("made", "s", "agent")
    if at is None:
        dialogue.user("First", 0.0)
    dialogue.call(CALL, "Yes.", at)
    (piece,) = dialogue.pieces()
    assert (piece.timing, {(span.start, span.end) for span in piece.spans}) == ("none", {(0.0, 0.0)})


def test_histories_that_no_window_holds_are_left_out() -> None:
    dialogue = Dialogue("made", "s", "agent")
    dialogue.user("First", 0.0)
    for _ in range(2000):
        dialogue.hear("user", "more", 1.0)
    dialogue.call(CALL, "Yes.", 2.0)
    (piece,) = dialogue.pieces()
    assert calls(piece)[0].prompt is None
    assert any("left out" in remark for remark in piece.remarks)
