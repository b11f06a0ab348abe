from collections.abc import Sequence

import pytest
from findings import found
from tasks import call

from headway.core.span import Span
from headway.core.usage import Usage


def turns(prefill: Sequence[float], *, read: Sequence[int | None] | None = None) -> list[Span]:
    """Calls one after another, 1,000 input tokens longer each time, half a second of decode each."""
    spans: list[Span] = []
    at = 0.0
    for i, length in enumerate(prefill):
        usage = Usage(input_tokens=1000 * (i + 1) if read is None else read[i], output_tokens=10)
        marks = (at, at + length, at + length + 0.5)
        spans.append(call(str(i), at, marks[2], marks=marks, usage=usage))
        at = marks[2]
    return spans


def test_prefill_that_rises_with_the_history() -> None:
    # 0.2 s + 0.1 s for every 1,000 tokens more: 0.1 x (0 + 1 + ... + 9) = 4.5 s of 11.5 s
    finding = found(turns([0.2 + 0.1 * i for i in range(10)]))["slower-turns"]
    assert finding.seconds == pytest.approx(4.5)
    assert finding.confidence == "likely"
    assert "100 ms more for every 1,000 input tokens" in finding.title
    assert "10 calls of 1,000 to 10,000 input tokens" in finding.evidence[0]
    assert "(95 % interval 100 ms to 100 ms)" in finding.evidence[0]


def test_prefill_that_stays() -> None:
    assert "slower-turns" not in found(turns([0.5, 0.6] * 5))


def test_a_rise_that_noise_explains() -> None:
    assert "slower-turns" not in found(turns([0.2, 0.9, 0.1, 1.2, 0.3, 0.8, 0.2, 1.1, 0.4, 0.9]))


def test_seven_calls_are_too_few_for_a_slope() -> None:
    assert "slower-turns" not in found(turns([0.2 + 0.1 * i for i in range(7)]))


def test_a_sure_slope_that_costs_little_is_not_told() -> None:
    assert "slower-turns" not in found(turns([1 + 0.001 * i for i in range(10)]))


def test_without_input_tokens_there_is_no_slope() -> None:
    spans = turns([0.2 + 0.1 * i for i in range(10)], read=[None] * 10)
    assert "slower-turns" not in found(spans)
    assert "slower-turns" not in found(turns([0.2 + 0.1 * i for i in range(10)]), "none")


def unsplit(rise: float) -> list[Span]:
    """A call takes 1 s, a millisecond for each of 100, 200 or 300 output tokens, and ``rise`` for every 1,000 read."""
    spans: list[Span] = []
    at = 0.0
    for i in range(12):
        written = 100 * (i % 3 + 1)
        until = at + 1 + written / 1000 + rise * i
        spans.append(call(str(i), at, until, usage=Usage(input_tokens=1000 * (i + 1), output_tokens=written)))
        at = until
    return spans


def test_unsplit_calls_are_compared_at_equal_output() -> None:
    # 0.2 x (0 + 1 + ... + 11) = 13.2 s; outputs come in threes, so a robust slope is a little off
    finding = found(unsplit(0.2))["slower-turns"]
    assert finding.seconds == pytest.approx(13.2, rel=0.1)
    assert finding.confidence == "possible"
    assert "at equal output" in finding.evidence[0]
    assert "slower-turns" not in found(unsplit(0.0))
