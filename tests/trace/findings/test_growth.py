from findings import found, told
from msgspec import structs
from tasks import call

from headway.core.money import MicroUsd
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage


def turns(*read: int | None, cached: int | None = None) -> list[Span]:
    return [
        call(str(i), i, i + 1, usage=Usage(input_tokens=tokens, output_tokens=100, cache_read=cached))
        for i, tokens in enumerate(read)
    ]


def test_a_prompt_that_grows_and_grows() -> None:
    # without growth 4 x 1,000; growth is 2,000 + 4,000 + 6,000 of 16,000
    finding = found(turns(1000, 3000, 5000, 7000))["context-growth"]
    assert finding.tokens == 12_000
    assert finding.title.startswith("The prompt grows from 1,000 to 7,000 tokens in 4 calls: 75 % of all tokens read")
    assert finding.confidence == "certain"
    assert finding.seconds is None
    assert "not in the record" in finding.evidence[1]


def test_what_growth_costs_at_the_cache_s_price() -> None:
    # nothing cached: 12,000 tokens at 1 USD per million
    assert found(turns(1000, 3000, 5000, 7000, cached=0), money=True)["context-growth"].cost == 12_000


def test_what_the_longest_prompt_is_made_of() -> None:
    spans = turns(1000, 3000, 5000, 7000)
    spans[3] = told(spans[3], ("system", "s" * 100), ("tool", "t" * 900))  # of the others nothing is known
    assert found(spans)["context-growth"].evidence[2] == (
        "The longest prompt's characters: tool 90 %, system 10 %; its largest message (tool) is 90 % of it."
    )


def test_a_prompt_that_stays() -> None:
    assert "context-growth" not in found(turns(1000, 1100, 1200, 1300))


def test_a_jump_at_the_end_is_not_what_the_task_reads() -> None:
    assert "context-growth" not in found(turns(1000, 1000, 1000, 3000))


def test_prompts_that_rise_and_fall_are_no_growing_history() -> None:
    assert "context-growth" not in found(turns(1000, 7000, 3000, 6000, 2000, 7000))
    assert "context-growth" in found(turns(1000, 3000, 6000, 2000, 4000, 7000))  # once compacted


def test_prompts_that_begin_otherwise_are_other_conversations() -> None:
    spans = [told(span, ("user", f"{span.id} is the question")) for span in turns(1000, 3000, 5000, 7000)]
    assert "context-growth" not in found(spans)


def test_a_leap_may_be_another_conversation_or_one_huge_result() -> None:
    leap = turns(1000, 20_000, 21_000, 22_000)
    assert "context-growth" not in found(leap)
    known = [told(span, ("user", "Read it."), *[("tool", "text")] * i) for i, span in enumerate(leap)]
    assert "context-growth" in found(known)


def test_short_prompts_are_quickly_read() -> None:
    assert "context-growth" not in found(turns(10, 1000, 2000, 4000))


def test_growth_that_the_cache_makes_cheap() -> None:
    assert "context-growth" not in found(turns(10_000, 30_000, 50_000, 70_000, cached=160_000 // 4))


def test_lengths_are_not_known() -> None:
    assert "context-growth" not in found(turns(1000, 3000, None, 7000))
    assert "context-growth" not in found(turns(None, 3000, 5000, 7000))


def test_growth_in_characters_where_no_tokens_are_known() -> None:
    # 4,000, 8,000, 12,000 and 20,000 characters: 28,000 of 44,000 are growth
    texts = ["a" * 4000, "b" * 4000, "c" * 4000, "d" * 8000]
    spans = [told(call(str(i), 0, 0), *[("user", text) for text in texts[: i + 1]]) for i in range(4)]
    finding = found(spans, "none")["context-growth"]
    assert finding.title == (
        "The prompt grows from 4,000 to 20,000 characters in 4 calls: 64 % of all characters read are earlier turns,"
        " read again and again."
    )
    assert finding.tokens is None
    assert "context-growth" not in found(spans[:3], "none")
    shorter = [told(call(str(i), 0, 0), *[("user", text[:999]) for text in texts[: i + 1]]) for i in range(4)]
    assert "context-growth" not in found(shorter, "none")


def test_what_growing_calls_cost_where_only_that_is_known() -> None:
    texts = ["a" * 4000, "b" * 4000, "c" * 4000, "d" * 8000]
    spans = [
        costing(told(call(str(i), 0, 0), *[("user", text) for text in texts[: i + 1]]), 1000 * 4**i) for i in range(4)
    ]
    assert found(spans, "none")["context-growth"].evidence[2] == "The first of them cost $0.0010, the dearest $0.0640."


def costing(span: Span, cost: int) -> Span:
    assert isinstance(span.work, ModelCall)
    return structs.replace(span, work=structs.replace(span.work, cost=MicroUsd(cost)))
