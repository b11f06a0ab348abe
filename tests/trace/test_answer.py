from findings import broken, told
from msgspec import structs
from tasks import T0, call, tool

from headway.core.span import ModelCall, Span
from headway.trace.answer import task_ttft
from headway.trace.study import study


def test_the_first_text_of_an_answer_that_broke_off_was_seen() -> None:
    notes: list[str] = []
    assert task_ttft(study([broken(call("a", 0, 4, marks=(0.5, 1, 3)))]), notes) == 1
    assert notes == ["Task TTFT is that of an answer that broke off."]


def test_a_call_that_failed_before_any_text_showed_nothing() -> None:
    notes: list[str] = []
    assert task_ttft(study([broken(call("a", 0, 4))]), notes) is None
    assert notes == ["Task TTFT is unknown: the loop does not end with an answer."]


def test_an_answer_that_broke_off_and_was_made_again_had_been_seen() -> None:
    notes: list[str] = []
    tries = [broken(call("a", 0, 4, marks=(0.5, 1, 3))), broken(call("b", 5, 9, marks=(5.5, 6, 9)))]
    assert task_ttft(study([*tries, call("c", 10, 14, marks=(10.5, 11, 14))]), notes) == 1
    assert task_ttft(study(tries), notes) == 1
    assert notes == ["Task TTFT is that of an answer that broke off and was made again."] * 2


def test_what_had_shown_nothing_when_it_broke_off_does_not_count() -> None:
    notes: list[str] = []
    silent = broken(call("a", 0, 4))
    assert task_ttft(study([silent, call("b", 5, 9, marks=(5.5, 6, 9))]), notes) == 6
    assert task_ttft(study([silent, broken(call("b", 5, 9, marks=(5.5, 6, 9)))]), notes) == 6
    assert notes == ["Task TTFT is that of an answer that broke off."]


def test_another_question_that_broke_off_does_not_count() -> None:
    first = told(broken(call("a", 0, 4, marks=(0.5, 1, 3))), ("user", "this"))
    assert task_ttft(study([first, told(call("b", 5, 9, marks=(5.5, 6, 9)), ("user", "that"))]), []) == 6


def test_a_broken_try_of_a_call_for_tools_was_no_answer() -> None:
    first = broken(call("a", 0, 2, marks=(0, 1, 2)))
    spans = [first, call("b", 3, 4, asks=("1",)), tool("t", 4, 5, by="b"), call("c", 5, 9, marks=(5, 7, 9))]
    assert task_ttft(study(spans), []) == 7


def test_a_call_that_broke_off_after_it_had_asked_for_tools_was_no_answer() -> None:
    spans = [call("a", 0, 2, asks=("1",)), tool("t", 2, 3, by="a"), broken(call("b", 3, 4, asks=("2",)))]
    assert task_ttft(study(spans), []) is None


def shown(one: Span, *, stream: bool | None, first_visible: float | None = None) -> Span:
    """The record says that it had text for the user."""
    assert isinstance(one.work, ModelCall)
    return structs.replace(one, work=structs.replace(one.work, shown=True, stream=stream, first_visible=first_visible))


def test_text_that_was_shown_beside_tool_calls_is_the_first_that_the_user_sees() -> None:
    rest = [tool("t", 2, 3, by="a"), call("b", 3, 4)]
    asking = call("a", 0, 2, asks=("1",))
    assert task_ttft(study([shown(asking, stream=False), *rest]), []) == 2  # it came whole
    assert task_ttft(study([shown(asking, stream=True, first_visible=T0 + 0.5), *rest]), []) == 0.5
    notes: list[str] = []
    assert task_ttft(study([shown(asking, stream=None), *rest]), notes) is None
    assert notes == ["Task TTFT is unknown: the first text, beside tool calls, was not timed."]


def test_text_beside_tool_calls_that_nobody_is_known_to_have_been_shown_is_told_and_not_counted() -> None:
    notes: list[str] = []
    asking = shown(call("a", 0, 2, asks=("1",)), stream=True, first_visible=T0 + 0.5)
    assert isinstance(asking.work, ModelCall)
    asking = structs.replace(asking, work=structs.replace(asking.work, shown=False))
    assert task_ttft(study([asking, tool("t", 2, 3, by="a"), call("b", 3, 4)]), notes) == 4
    assert notes[0].startswith("Text stood beside the tool calls of 1 earlier answer; whether")


def test_earlier_answers_are_counted_in_words_that_fit() -> None:
    def said(number: int) -> list[str]:
        spans = [call(f"c{i}", i, i + 1, marks=(i, i + 0.5, i + 1)) for i in range(number)]
        notes: list[str] = []
        task_ttft(study(spans), notes)
        return [note.partition("calls ")[2].partition(" taken")[0] for note in notes if "earlier" in note]

    assert (said(1), said(2), said(3)) == ([], ["is"], ["are"])
