"""A prompt that is huge from the first call on."""

import re

from findings import found, told
from msgspec import structs
from tasks import call, human

from headway.core.prompt import Part
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.trace.whatif_text import parse


def turns(*read: int | None, cached: int | None = None) -> list[Span]:
    return [
        call(
            str(i),
            i,
            i + 1,
            marks=(i, i + 0.5, i + 1),
            usage=Usage(input_tokens=n, output_tokens=100, cache_read=cached),
        )
        for i, n in enumerate(read)
    ]


def with_chars(made: Span, **chars: int) -> Span:
    """The call with one message a role, of so many characters."""
    assert isinstance(made.work, ModelCall)
    prompt = tuple(Part(role=role, chars=count, digest=role, shape=role) for role, count in chars.items())
    return structs.replace(made, work=structs.replace(made.work, prompt=prompt))


def test_tools_and_instructions_that_every_call_reads() -> None:
    first, *rest = turns(40_000, 41_000, 42_000)
    # the user's 4,000 characters are about 1,000 tokens: 39,000 stand, read by all three calls
    finding = found([with_chars(first, system=8_000, user=4_000), *rest])["standing-prompt"]
    assert finding.title == (
        "The first call reads about 39,000 tokens that nobody said in this task, such as instructions and tools;"
        " 3 calls read them."
    )
    assert finding.tokens == 117_000
    assert finding.seconds == 0.5 * 39 / 40  # of the first call's reading
    assert finding.confidence == "possible"  # most of it is in no message
    assert "about 37,000 tokens, is in no message" in finding.evidence[1]


def test_instructions_that_are_on_record_are_likely() -> None:
    finding = found([with_chars(turns(40_000)[0], system=120_000, user=400)])["standing-prompt"]
    assert finding.confidence == "likely"
    assert "Instructions are 120,000 characters" in finding.evidence[1]


def test_where_messages_are_not_recorded_it_is_only_possible() -> None:
    assert found(turns(40_000, 41_000))["standing-prompt"].confidence == "possible"


def test_after_an_earlier_task_of_the_session_it_holds_that_conversation() -> None:
    assert "standing-prompt" not in found([human("wait", -20, 0), *turns(40_000, 41_000)])


def test_a_long_text_of_the_users_is_no_standing_prompt() -> None:
    assert "standing-prompt" not in found([with_chars(turns(40_000)[0], user=100_000)])


def test_an_earlier_conversation_is_none_either() -> None:
    before = with_chars(turns(40_000)[0], system=8_000, user=20_000, assistant=40_000, tool=30_000)
    assert "standing-prompt" not in found([before])


def test_a_usual_prompt_and_one_that_is_soon_a_small_part_are_none() -> None:
    assert "standing-prompt" not in found(turns(15_000, 16_000))
    assert "standing-prompt" not in found(turns(20_000, *[100_000] * 5))
    assert "standing-prompt" not in found(turns(None, 50_000))


def test_what_a_cache_makes_cheap_is_none() -> None:
    assert "standing-prompt" not in found(turns(40_000, 40_000, cached=39_000))
    assert "standing-prompt" in found(turns(40_000, 40_000, cached=0))


def test_what_if_takes_what_the_remedy_says() -> None:
    (change,) = re.findall(r'--what-if "([^"]+)"', found(turns(40_000))["standing-prompt"].remedy)
    assert parse(change)


def test_the_first_call_is_the_agents_own() -> None:
    asked = told(turns(40_000)[0], ("user", "hi"))
    assert found([asked])["standing-prompt"].spans == ("0",)
