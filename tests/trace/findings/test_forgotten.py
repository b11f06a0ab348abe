from findings import found
from tasks import call, human, step

from headway.core.span import Span
from headway.core.usage import Usage


def resumed(waited: float, read: int, cached: int | None) -> list[Span]:
    """A task that begins after a person was waited for; its first call reads so much, the second finds it cached."""
    return [
        human("wait", -waited, 0),
        step("root", 0, 10, agent="a"),
        call("first", 0, 6, "root", usage=Usage(input_tokens=read, output_tokens=10, cache_read=cached)),
        call("second", 6, 10, "root", usage=Usage(input_tokens=read + 10, output_tokens=10, cache_read=read)),
    ]


def test_the_cache_had_gone_while_a_person_was_waited_for() -> None:
    finding = found(resumed(600, 60_000, 3_000), money=True)["cache-forgotten"]
    assert finding.title == (
        "The cache had gone while a person was waited for (600 s): the first call computed 57,000 of its 60,000 prompt"
        " tokens (95 %)."
    )
    assert finding.tokens == 57_000
    assert finding.confidence == "likely"
    assert finding.spans == ("first",)
    assert finding.seconds is None  # the first token was not timed


def test_after_a_short_wait_something_else_may_have_lost_it() -> None:
    finding = found(resumed(200, 60_000, 3_000))["cache-forgotten"]
    assert finding.confidence == "possible"
    assert "shorter" in finding.evidence[1]


def test_what_the_cache_still_had_or_is_quickly_read() -> None:
    assert "cache-forgotten" not in found(resumed(600, 60_000, 31_000))
    assert "cache-forgotten" not in found(resumed(600, 4_000, 0))
    assert "cache-forgotten" not in found(resumed(600, 60_000, None))
    assert "cache-forgotten" not in found(resumed(600, 60_000, 3_000)[1:])  # nobody was waited for
