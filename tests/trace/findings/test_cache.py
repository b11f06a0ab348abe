import pytest
from findings import found, told
from msgspec import structs
from tasks import call

from headway.core.span import ModelCall, Span
from headway.core.usage import Usage

RULES = "You are careful. " * 40  # 680 characters
QUESTION = "Where is it? " * 20  # 260


def read(tokens: int, cached: int | None, written: int | None = None) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=100, cache_read=cached, cache_write=written)


def pair(first: str, second: str, cached: int | None) -> list[Span]:
    """Two turns: 1,000 tokens, then those and 400 more; a second of prefill for every 1,000 tokens."""
    history = (("system", first), ("user", QUESTION))
    longer = (("system", second), ("user", QUESTION), ("assistant", "look"), ("tool", "here"))
    a = call("a", 0, 2, marks=(0, 1, 2), usage=read(1000, 0))
    b = call("b", 2, 4.4, marks=(2, 3.4, 4.4), usage=read(1400, cached))
    return [told(a, *history), told(b, *longer)]


def timed(clock: str) -> str:
    return f"It is 2025-06-11 {clock}. {RULES}"


def test_a_time_in_the_prompt_keeps_the_cache_empty() -> None:
    finding = found(pair(timed("10:02:03"), timed("10:02:09"), 0), money=True)["cache-prefix-broken"]
    assert finding.title.startswith("Message 1 (system) breaks the cached prefix of 1 prompt: only times or ids in it")
    assert finding.confidence == "certain"
    assert finding.tokens == 1000
    assert finding.cost == 900  # 1 - 0.1 USD per million
    assert finding.seconds == pytest.approx(1.0)  # 1,000 of the 1,400 tokens that took 1.4 s
    assert finding.spans == ("b",)
    assert finding.evidence[2] == "They read 0 tokens from the cache."


def test_other_text_in_the_prompt_may_be_meant_to_change() -> None:
    finding = found(pair(RULES, f"Remember the milk. {RULES}", 0))["cache-prefix-broken"]
    # the question comes again, behind a message that differs: 260 of 940 characters
    assert finding.tokens == 276
    assert finding.confidence == "likely"
    assert "its text changes" in finding.title


def test_what_was_read_is_unknown() -> None:
    finding = found(pair(timed("10:02:03"), timed("10:02:09"), None))["cache-prefix-broken"]
    assert (finding.confidence, finding.tokens, finding.seconds) == ("possible", None, None)
    assert "is not in the record" in finding.evidence[2]


def test_a_cache_that_finds_it_nevertheless() -> None:
    assert not {"cache-prefix-broken", "cache-unused"} & found(pair(timed("10:02:03"), timed("10:02:09"), 900)).keys()


def test_a_prompt_that_only_grows_breaks_nothing() -> None:
    assert not {"cache-prefix-broken", "cache-unused"} & found(pair(RULES, RULES, 1000)).keys()


def test_a_beginning_in_common_that_is_not_read_from_the_cache() -> None:
    finding = found(pair(RULES, RULES, 0), money=True)["cache-unused"]
    assert finding.title == "Prompts repeat 1,000 tokens of earlier ones, but 0 % of that is read from the cache."
    assert (finding.tokens, finding.cost, finding.confidence) == (1000, 900, "likely")
    assert finding.seconds == pytest.approx(1.0)


def test_a_beginning_in_common_of_which_most_is_read() -> None:
    assert "cache-unused" not in found(pair(RULES, RULES, 600))


def test_whether_anything_was_read_is_not_known() -> None:
    assert "cache-unused" not in found(pair(RULES, RULES, None))


def bare(*calls: tuple[int, int | None]) -> list[Span]:
    return [call(str(i), i, i + 1, usage=read(*usage)) for i, usage in enumerate(calls)]


def test_without_prompts_lengths_must_do() -> None:
    # 1,000 read and 100 written come again in the next: 1,100 of 1,400
    finding = found(bare((1000, 0), (1400, 0)))["cache-unused"]
    assert (finding.tokens, finding.confidence, finding.seconds) == (1100, "possible", None)
    assert "taken from their lengths" in finding.evidence[1]
    assert "cache-unused" not in found(bare((1000, 0), (1400, 1000)))
    assert "cache-unused" not in found(bare((1000, None), (1400, None)))


def at(span: Span, provider: str | None = None, replica: str | None = None) -> Span:
    assert isinstance(span.work, ModelCall)
    return structs.replace(span, work=structs.replace(span.work, provider=provider, replica=replica))


def test_hosted_caches_keep_nothing_below_1024_tokens() -> None:
    short = [at(span, "openai") for span in pair(RULES, RULES, 0)]
    assert "cache-unused" not in found(short)
    stamped = [at(span, "openai") for span in pair(timed("10:02:03"), timed("10:02:09"), 0)]
    assert "cache-prefix-broken" not in found(stamped)


def test_what_may_have_lost_the_cache_is_told() -> None:
    a, b = pair(RULES, RULES, 0)
    moved = found([at(a, "vllm", "one"), at(b, "vllm", "two")])["cache-unused"]
    assert "1 of them went to another replica than the call before, which has another cache." in moved.evidence
    stayed = found([at(a, "vllm", "one"), at(b, "vllm", "one")])["cache-unused"]
    assert not any("replica" in sentence for sentence in stayed.evidence)
    late = structs.replace(b, start=b.start + 400, end=b.start + 402)
    assert any("more than 300 s later" in sentence for sentence in found([a, late])["cache-unused"].evidence)


def test_a_call_that_ran_beside_another_could_not_read_what_it_wrote() -> None:
    a, b = pair(RULES, RULES, 0)
    beside = structs.replace(b, start=a.start)
    assert "cache-unused" not in found([a, beside])


def test_two_agents_share_no_history() -> None:
    a, b = pair(timed("10:02:03"), timed("10:02:09"), 0)
    assert isinstance(b.work, ModelCall)
    other = structs.replace(b, work=structs.replace(b.work, model="n"))
    assert not {"cache-prefix-broken", "cache-unused"} & found([a, other]).keys()
