from findings import found, told, used
from tasks import call, tool

from headway.core.span import Span
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


def test_a_long_system_text_quotes_no_answer() -> None:
    rules = ("system", "Be brief. " * 500)
    spans = [told(call("a", 0, 4), rules, ASKED, answer=PLAN), told(call("b", 4, 6), rules, ASKED, ("user", "No."))]
    assert "unread-answers" in found(spans)


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


def results(big: str, *kept: str) -> list[Span]:
    """A call that asks for two tools, and the call after it, whose prompt holds what of the results was kept."""
    asked = told(call("a", 0, 1, asks=("1", "2")), ASKED)
    tools = [
        used(tool("t", 1, 2, by="a"), "read", result=big),
        used(tool("u", 1, 2, by="a"), "list", result="a.txt"),
    ]
    return [asked, *tools, told(call("b", 2, 3), ASKED, *(("tool", text) for text in kept))]


def test_a_huge_result_that_was_cut_short() -> None:
    big = "line\n" * 4000
    finding = found(results(big, big[:5000], "a.txt"))["unread-results"]
    assert finding.spans == ("t",)
    assert "20,000 characters" in finding.title
    assert finding.confidence == "possible"
    assert "unread-results" not in found(results(big, big, "a.txt"))


def test_a_small_result_may_be_dropped() -> None:
    assert "unread-results" not in found(results("line\n" * 40, "a.txt"))


def test_where_no_result_is_found_again_prompts_may_be_written_otherwise() -> None:
    assert "unread-results" not in found(results("line\n" * 4000, "Results: line, line, a.txt"))


def test_prompts_and_answers_are_not_kept() -> None:
    assert "unread-answers" not in found([call("a", 0, 4), call("b", 4, 6)])
    assert "unread-answers" not in found([told(call("a", 0, 4), ASKED), told(call("b", 4, 6), ASKED)])
