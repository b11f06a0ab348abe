from findings import broken
from tasks import call, tool

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


def test_what_broke_off_and_was_answered_by_another_call_does_not_count() -> None:
    spans = [broken(call("a", 0, 4, marks=(0.5, 1, 3))), call("b", 5, 9, marks=(5.5, 6, 9))]
    assert task_ttft(study(spans), []) == 6


def test_a_call_that_broke_off_after_it_had_asked_for_tools_was_no_answer() -> None:
    spans = [call("a", 0, 2, asks=("1",)), tool("t", 2, 3, by="a"), broken(call("b", 3, 4, asks=("2",)))]
    assert task_ttft(study(spans), []) is None
