import pytest
from findings import broken, found
from tasks import call, tool

from headway.core.span import Span
from headway.core.usage import EngineTimings, Usage
from headway.trace.anatomy import dissect

# reads for 1 s, writes 400 tokens in 8 s
LONG = call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=400, reasoning=300))


def test_a_long_output() -> None:
    finding = found([LONG, tool("t", 9, 10)])["writing-dominates"]
    assert finding.seconds == 8
    assert finding.tokens == 400
    assert finding.confidence == "certain"
    assert finding.title == "Writing takes 80 % of the 10.0 s: 400 tokens, 20 ms each."
    assert finding.evidence[1] == "Of the tokens, 300 are reasoning, not answer."


def test_a_token_takes_what_the_table_of_calls_says() -> None:
    # TPOT: eight seconds lie between the first token and the fifth, so each of the four after the first took two
    short = call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=5))
    assert found([short])["writing-dominates"].title.endswith("5 tokens, 2.00 s each.")
    (iteration,) = dissect([short]).iterations
    assert iteration.tpot == 2.0
    # of two streams: 8 + 4 s over 4 + 8 gaps
    other = call("b", 9, 14, marks=(9, 10, 14), usage=Usage(input_tokens=10, output_tokens=9))
    assert found([short, other])["writing-dominates"].title.endswith("14 tokens, 1.00 s each.")
    # by the engine's own count of what it decoded
    engine = EngineTimings(prefill_tokens=10, prefill_seconds=1, decode_tokens=9, decode_seconds=8)
    told = call("a", 0, 9, engine=engine, usage=Usage(input_tokens=10, output_tokens=9))
    assert found([told])["writing-dominates"].title.endswith("9 tokens, 1.00 s each.")
    alone = call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=1))
    assert found([alone])["writing-dominates"].title == "Writing takes 89 % of the 9.00 s: 1 token."


def test_how_many_tokens_were_written_is_not_known() -> None:
    finding = found([call("a", 0, 9, marks=(0, 1, 9))])["writing-dominates"]
    assert finding.title == "Writing takes 89 % of the 9.00 s."
    assert len(finding.evidence) == 1


def test_an_engine_s_own_timings_are_less_sure() -> None:
    engine = EngineTimings(prefill_tokens=10, prefill_seconds=1, decode_tokens=10, decode_seconds=8)
    assert found([call("a", 0, 9, engine=engine)])["writing-dominates"].confidence == "likely"


def test_a_short_output() -> None:
    assert "writing-dominates" not in found([call("a", 0, 9, marks=(0, 6, 9))])


def paced(*written: int, error: float = 0.0) -> list[Span]:
    """Calls one after another that take 1 s and 20 ms for each token, the first token not timed."""
    spans: list[Span] = []
    start = 0.0
    for number, tokens in enumerate(written):
        took = 1 + 0.02 * tokens + (error if number % 2 else 0.0)
        usage = Usage(input_tokens=1000, output_tokens=tokens, reasoning=tokens // 2)
        spans.append(call(str(number), start, start + took, usage=usage))
        start += took
    return spans


def test_calls_that_take_longer_the_more_they_write() -> None:
    # 3, 5, 7, 9 and 11 s: of 35 s, 1,500 tokens of 20 ms are 30 s
    finding = found(paced(100, 200, 300, 400, 500))["writing-dominates"]
    assert finding.seconds == pytest.approx(30)
    assert finding.tokens == 1500
    assert finding.confidence == "likely"
    assert finding.title == "Writing takes about 86 % of the 35.0 s: 1,500 tokens, 20 ms each."
    assert finding.evidence == (
        "Writing on the critical path: about 30.0 s in 5 calls; the longest, 4, writes for about 10.0 s.",
        (
            "The first token was not timed; but over 5 calls of m with 100 to 500 output tokens a call takes 20 ms"
            " longer for each token (95 % interval 20 ms to 20 ms)."
        ),
        "Of the tokens, 750 are reasoning, not answer.",
    )


def test_four_calls_are_too_few_and_times_that_do_not_follow_the_output_say_nothing() -> None:
    assert "writing-dominates" not in found(paced(100, 200, 300, 400))
    assert "writing-dominates" not in found(paced(100, 200, 300, 400, 500, error=-7))


def test_writing_that_takes_less_than_all_else_is_not_to_blame() -> None:
    # 10 + 20 + 30 + 40 + 50 tokens are 3 s of 8
    assert "writing-dominates" not in found(paced(10, 20, 30, 40, 50))


def test_without_a_first_token_nobody_knows_when_the_writing_began() -> None:
    assert "writing-dominates" not in found([call("a", 0, 9)])
    assert "writing-dominates" not in found([LONG], "none")


def test_an_answer_that_broke_off_was_not_too_long() -> None:
    whole = call("a", 0, 4, marks=(0, 1, 4))
    assert "writing-dominates" in found([whole])
    assert "writing-dominates" not in found([broken(whole, "upstream_closed")])
