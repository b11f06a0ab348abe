import pytest
from findings import found
from tasks import call

from headway.core.span import Span
from headway.core.usage import Usage
from headway.trace.findings.slow_calls import MOST


def sized(name: str, start: float, end: float, read: int | None, wrote: int, cached: int | None = None) -> Span:
    return call(name, start, end, usage=Usage(input_tokens=read, output_tokens=wrote, cache_read=cached))


def test_a_call_that_took_longer_than_one_that_had_more_to_do() -> None:
    # 6 s for 50 tokens; another read and wrote more in 3 s
    spans = [sized("a", 0, 6, 1000, 50, 0), sized("b", 6, 9, 1100, 200, 50)]
    finding = found(spans)["slow-calls"]
    assert finding.seconds == pytest.approx(3)
    assert finding.confidence == "likely"
    assert finding.spans == ("a",)
    assert finding.title == (
        "1 call took 2.0 times as long as others of the same model that had about as much to read and to write, or"
        " more: 3.00 s (33 % of E2E)."
    )
    assert finding.evidence == (
        "a read 1,000 tokens and wrote 50 in 6.00 s; 1 call that had about as much to do took 3.00 s.",
        "Which they are: a.",
        "From the cache came 0 % of their prompts.",
    )


def test_calls_that_had_more_to_do_may_take_longer() -> None:
    assert "slow-calls" not in found([sized("a", 0, 6, 1000, 500), sized("b", 6, 9, 1100, 200)])
    assert "slow-calls" not in found([sized("a", 0, 6, 2000, 50), sized("b", 6, 9, 1100, 200)])
    assert "slow-calls" not in found([sized("a", 0, 5, 1000, 50), sized("b", 5, 8, 1100, 200)])
    assert "slow-calls" not in found([sized("a", 0, 6, None, 50), sized("b", 6, 9, 1100, 200)])
    assert "slow-calls" not in found([sized("a", 0, 6, 1000, 50), sized("b", 6, 9, 1100, 200)], "none")


def test_what_the_cache_gave_another_call_it_did_not_have_to_read() -> None:
    # 388 tokens read in 4.3 s against 40 in 0.6 s: the cache explains it, not the engine
    spans = [sized("a", 0, 4.3, 660, 50, 272), sized("b", 4.3, 4.9, 742, 50, 702)]
    assert "slow-calls" not in found(spans)


def test_of_very_many_calls_each_is_compared_with_some_that_are_chosen_evenly() -> None:
    # 1,000 calls of 1 to 2 s, and one of 400 s that had as much to do: only 256 others are looked at for each
    usual = [sized(f"c{i}", i * 2, i * 2 + 1 + i / 1000, 1000, 50) for i in range(1000)]
    finding = found([*usual, sized("slow", 2000, 2400, 1000, 50)])["slow-calls"]
    assert finding.spans == ("slow",)
    assert f"{MOST:,} calls that had about as much to do took 1.50 s (median)" in finding.evidence[0]
    assert finding.seconds == pytest.approx(398.5, abs=0.01)
