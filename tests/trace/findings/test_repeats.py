import pytest
from findings import found, told, used
from tasks import call, tool

from headway.core.span import Span
from headway.core.usage import Usage


def loop(*results: str | None, arguments: str | None = "same", failed: bool | None = None) -> list[Span]:
    """Turns of a second's call and a second's ``read``, then an answer of a second."""
    spans: list[Span] = []
    for i, result in enumerate(results):
        usage = Usage(input_tokens=100, output_tokens=10)
        spans.append(call(f"c{i}", 2 * i, 2 * i + 1, asks=(f"{i}",), usage=usage))
        made = tool(f"t{i}", 2 * i + 1, 2 * i + 2, by=f"c{i}")
        spans.append(used(made, "read", arguments, result, failed=failed))
    end = 2 * len(results)
    return [*spans, call("answer", end, end + 1)]


def test_the_same_call_with_the_same_result() -> None:
    # twice too often, a second each, of 7
    finding = found(loop("text", "text", "text"))["repeated-tools"]
    assert finding.seconds == pytest.approx(2)
    assert finding.confidence == "likely"
    assert finding.spans == ("t1", "t2")
    assert "brought the same result again: 2.00 s (29 % of E2E)" in finding.title


def test_the_same_call_whose_results_are_not_kept() -> None:
    finding = found(loop(None, None))["repeated-tools"]
    assert finding.confidence == "possible"
    assert "not in the record" in finding.evidence[1]


def test_a_result_without_text_says_as_little_as_none() -> None:
    assert found(loop("", ""))["repeated-tools"].confidence == "possible"


def test_the_same_call_with_another_result_looks_at_something_that_changed() -> None:
    assert "repeated-tools" not in found(loop("red", "green"))


def test_other_arguments_are_another_call() -> None:
    spans = loop("text", "text")
    assert "repeated-tools" not in found([*spans[:3], used(spans[3], "read", "other", "text"), spans[4]])


def test_what_it_was_called_with_is_not_known() -> None:
    assert not {"repeated-tools", "polled-tools", "no-progress"} & found(loop("text", "text", arguments=None)).keys()


def test_a_failed_call_made_again_is_a_retry() -> None:
    assert "repeated-tools" not in found(loop("error", "error", failed=True))


def test_repeats_are_found_without_times() -> None:
    finding = found(loop("text", "text"), "none")["repeated-tools"]
    assert finding.seconds is None
    assert finding.title.endswith("same result again.")


def test_asking_until_it_is_done() -> None:
    # after the first look, two turns of 2 s and 110 tokens
    finding = found(loop("10 %", "50 %", "done"))["polled-tools"]
    assert finding.seconds == pytest.approx(4)
    assert finding.tokens == 220
    assert finding.spans == ("c1", "t1", "c2", "t2")


def test_a_test_run_after_each_edit_is_no_polling() -> None:
    spans = loop("1 failed", "edited", "2 failed", "edited", "passed")
    edits = [used(span, "edit", "patch", "edited") if span.id in {"t1", "t3"} else span for span in spans]
    assert "polled-tools" not in found(edits)


def test_a_look_before_and_one_after_is_no_polling() -> None:
    assert "polled-tools" not in found(loop("before", "after"))


def test_a_loop_that_gets_nowhere() -> None:
    # of four equal turns three repeat the first: 3 x 2 s, 330 tokens
    finding = found(loop("text", "text", "text", "text"))["no-progress"]
    assert finding.seconds == pytest.approx(6)
    assert finding.tokens == 330
    assert finding.spans == ("c1", "t1", "c2", "t2", "c3", "t3")


def test_a_loop_that_goes_back_and_forth() -> None:
    spans = loop("here", "there", "here", "there")
    there = [used(s, "read", "b", "there") if s.id in {"t1", "t3"} else s for s in spans]
    assert found(there)["no-progress"].spans == ("c2", "t2", "c3", "t3")


def test_one_second_look_is_no_standstill() -> None:
    assert "no-progress" not in found(loop("text", "text"))


def test_a_turn_that_brings_something_new_is_progress() -> None:
    assert "no-progress" not in found(loop("a", "b", "a", "c"))


def test_a_turn_of_which_a_tool_is_missing_may_have_brought_something_new() -> None:
    spans = [call(f"c{i}", 2 * i, 2 * i + 1, asks=(f"{i}", f"x{i}")) for i in range(4)]
    tools = [used(tool(f"t{i}", 2 * i + 1, 2 * i + 2, by=f"c{i}"), "read", "same", "text") for i in range(4)]
    assert "no-progress" not in found([*spans, *tools])


def test_answers_that_the_prompt_already_holds() -> None:
    said = "I cannot find the file."
    first = told(call("a", 0, 1), ("user", "Find it"), answer=said)
    history = (("user", "Find it"), ("assistant", said), ("user", "Try again"))
    second = told(call("b", 1, 2), *history, answer=said)
    third = told(call("c", 2, 3), *history, ("assistant", said), ("user", "Try again"), answer=said)
    finding = found([first, second, third, told(call("d", 3, 4), *history, answer=said)])["no-progress"]
    assert finding.spans == ("c", "d")
    assert "already stands in their prompt" in finding.evidence[0]


def test_equal_answers_to_different_questions_are_no_loop() -> None:
    spans = [told(call(f"{i}", i, i + 1), ("user", f"Is {i} even?"), answer="no") for i in range(5)]
    assert "no-progress" not in found(spans)
