from findings import found
from tasks import call, tool

from headway.core.usage import EngineTimings, Usage

# reads for 1 s, writes 400 tokens in 8 s
LONG = call("a", 0, 9, marks=(0, 1, 9), usage=Usage(input_tokens=10, output_tokens=400, reasoning=300))


def test_a_long_output() -> None:
    finding = found([LONG, tool("t", 9, 10)])["writing-dominates"]
    assert finding.seconds == 8
    assert finding.tokens == 400
    assert finding.confidence == "certain"
    assert finding.title == "Writing takes 80 % of the 10.0 s: 400 tokens, 20 ms each."
    assert finding.evidence[1] == "Of the tokens, 300 are reasoning, not answer."


def test_how_many_tokens_were_written_is_not_known() -> None:
    finding = found([call("a", 0, 9, marks=(0, 1, 9))])["writing-dominates"]
    assert finding.title == "Writing takes 89 % of the 9.00 s."
    assert len(finding.evidence) == 1


def test_an_engine_s_own_timings_are_less_sure() -> None:
    engine = EngineTimings(prefill_tokens=10, prefill_seconds=1, decode_tokens=10, decode_seconds=8)
    assert found([call("a", 0, 9, engine=engine)])["writing-dominates"].confidence == "likely"


def test_a_short_output() -> None:
    assert "writing-dominates" not in found([call("a", 0, 9, marks=(0, 6, 9))])


def test_without_a_first_token_nobody_knows_when_the_writing_began() -> None:
    assert "writing-dominates" not in found([call("a", 0, 9)])
    assert "writing-dominates" not in found([LONG], "none")
