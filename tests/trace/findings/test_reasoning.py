import pytest
from findings import found
from tasks import call

from headway.core.span import Span
from headway.core.usage import Usage


def test_most_of_what_is_written_is_reasoning() -> None:
    # of 8 s of writing, 750 of 1,000 tokens: 6 s
    spans = [
        call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=1000, reasoning=750)),
        call("b", 9, 10, usage=Usage(input_tokens=10, output_tokens=20)),  # does not tell reasoning apart
    ]
    finding = found(spans, money=True)["reasoning-dominates"]
    assert finding.title == "Of 1,000 tokens written, 750 (75 %) are reasoning, not answer: 6.00 s (60 % of E2E)."
    assert finding.seconds == pytest.approx(6)
    assert finding.tokens == 750
    assert finding.cost == 750 * 2  # at 2 USD per million
    assert finding.confidence == "certain"
    assert finding.spans == ("a",)
    assert finding.evidence == ("In 1 call; most in a: 750 of its 1,000.",)


def test_where_the_writing_was_not_timed_its_seconds_are_fitted_or_unknown() -> None:
    # 1 s and 20 ms a token; half of the tokens are reasoning
    spans: list[Span] = []
    start = 0.0
    for number, tokens in enumerate((200, 400, 600, 800, 1000)):
        usage = Usage(input_tokens=10, output_tokens=tokens, reasoning=tokens // 2)
        spans.append(call(str(number), start, start + 1 + 0.02 * tokens, usage=usage))
        start += 1 + 0.02 * tokens
    fitted = found(spans)["reasoning-dominates"]
    assert fitted.seconds == pytest.approx(30)
    assert fitted.confidence == "likely"
    alone = found(spans[4:])["reasoning-dominates"]
    assert alone.seconds is None
    assert alone.title == "Of 1,000 tokens written, 500 (50 %) are reasoning, not answer."
    assert found(spans, "none")["reasoning-dominates"].seconds is None


def test_little_reasoning_is_nothing_to_tell_of() -> None:
    half = [call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=1202, reasoning=600))]
    assert "reasoning-dominates" not in found(half)
    few = [call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=499, reasoning=499))]
    assert "reasoning-dominates" not in found(few)
