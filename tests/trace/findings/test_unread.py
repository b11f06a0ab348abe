from findings import found, told
from tasks import call

from headway.core.usage import Usage

ASKED = ("user", "Write a plan.")
PLAN = "First look, then leap. " * 40  # 920 characters


def test_an_answer_that_the_conversation_goes_on_without() -> None:
    # it took 3 s to write 300 tokens, and the next prompt goes on as if it had not been
    a = call("a", 0, 4, marks=(0, 1, 4), usage=Usage(input_tokens=10, output_tokens=300))
    spans = [told(a, ASKED, answer=PLAN), told(call("b", 4, 6), ASKED, ("user", "Shorter."))]
    finding = found(spans, money=True)["unread-answers"]
    assert finding.seconds == 3
    assert finding.tokens == 300
    assert finding.cost == 600  # at 2 USD per million
    assert finding.confidence == "likely"
    assert finding.spans == ("a",)


def test_an_answer_in_the_next_prompt_was_read() -> None:
    spans = [told(call("a", 0, 4), ASKED, answer=PLAN), told(call("b", 4, 6), ASKED, ("assistant", PLAN))]
    assert "unread-answers" not in found(spans)


def test_an_answer_may_stand_inside_a_longer_message() -> None:
    quoted = ("user", f"Judge this plan: {PLAN}")
    spans = [told(call("a", 0, 4), ASKED, answer=PLAN), told(call("b", 4, 6), ASKED, quoted)]
    assert "unread-answers" not in found(spans)


def test_another_conversation_tells_nothing() -> None:
    spans = [told(call("a", 0, 4), ASKED, answer=PLAN), told(call("b", 4, 6), ("user", "Something else."))]
    assert "unread-answers" not in found(spans)


def test_the_last_answer_is_the_user_s() -> None:
    assert "unread-answers" not in found([told(call("a", 0, 4), ASKED, answer=PLAN)])


def test_a_word_more_or_less_is_no_matter() -> None:
    spans = [told(call("a", 0, 4), ASKED, answer="No."), told(call("b", 4, 6), ASKED, ("user", "Why?"))]
    assert "unread-answers" not in found(spans)


def test_prompts_and_answers_are_not_kept() -> None:
    assert "unread-answers" not in found([call("a", 0, 4), call("b", 4, 6)])
    assert "unread-answers" not in found([told(call("a", 0, 4), ASKED), told(call("b", 4, 6), ASKED)])
