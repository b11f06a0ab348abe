"""Whether the counts of an export hold its cache, and what a cost made of them is worth."""

import json

import pytest
from claims import calls_of
from langfuse_rows import call_of


def test_cache_counted_in_the_input_by_otel_is_not_added_again() -> None:
    """langfuse#12306: Langfuse shows 260,421 input tokens where there were 130,213."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 130_213,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.details.cache_read_tokens": 128_955,
        "gen_ai.usage.details.cache_write_tokens": 1_253,
    }
    span, _ = call_of(
        metadata=json.dumps({"attributes": attributes, "scope": {"name": "pydantic-ai"}}),
        usageDetails={
            "input": 130_213,
            "output": 40,
            "total": 260_461,
            "input_cache_read": 128_955,
            "input_cache_creation": 1_253,
        },
        costDetails={"total": 0.5},
    )
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.cache_write) == (130_213, 128_955, 1_253)
    assert call.cost is None  # reckoned from counts that are not these


def test_the_total_tells_that_the_input_holds_the_cache() -> None:
    span, piece = call_of(usageDetails={"input": 17_903, "input_cached_tokens": 17_817, "output": 100, "total": 18_003})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read) == (17_903, 17_817)
    assert not any("cached tokens" in remark.lower() for remark in piece.remarks)


def test_cache_beside_the_input_is_added_and_the_doubt_is_told() -> None:
    """langfuse#10592: a total of all keys is right where they exclude each other, and not where they do not."""
    span, piece = call_of(usageDetails={"input": 86, "input_cached_tokens": 17, "output": 100, "total": 203})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read) == (103, 17)
    assert any("which its export does not tell" in remark for remark in piece.remarks)


def test_cache_that_fits_into_no_input_is_added() -> None:
    span, piece = call_of(usageDetails={"input": 5, "cache_read_input_tokens": 900, "output": 7, "total": 912})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.cache_write) == (905, 900, None)
    assert piece.remarks == ("Cached tokens were added to the input of 1 call, whose counts leave them out.",)


def test_a_cost_reckoned_from_counts_in_doubt_is_unknown() -> None:
    """langfuse#12635: costs come out 2.5 times too high where the cache is priced as input."""
    span, _ = call_of(
        usageDetails={"input": 86, "input_cached_tokens": 17, "output": 100, "total": 203}, costDetails={"total": 1.0}
    )
    ((_, call),) = calls_of([span])
    assert call.cost is None


def test_a_cost_that_was_sent_is_kept() -> None:
    span, piece = call_of(providedCostDetails={"total": 0.0000125}, costDetails={"total": 0.0000125})
    ((_, call),) = calls_of([span])
    assert call.cost == 13
    assert piece.remarks == ()


@pytest.mark.parametrize(
    ("details", "output"),
    [
        ({"input": 9, "output": 20, "output_reasoning": 15, "total": 29}, 20),  # the total tells: held in the output
        ({"input": 9, "output": 5, "output_reasoning": 15, "total": 29}, 20),  # the total tells: apart
        ({"input": 9, "output": 5, "reasoning_tokens": 15}, 20),  # more than the output: apart
    ],
)
def test_reasoning_is_counted_once_in_the_output(details: dict[str, int], output: int) -> None:
    span, _ = call_of(usageDetails=details)
    ((_, call),) = calls_of([span])
    assert (call.usage.output_tokens, call.usage.reasoning) == (output, 15)


def test_zero_tokens_are_unknown() -> None:
    span, _ = call_of(usageDetails={"input": 0, "output": 0, "total": 0}, totalCost=0)
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (None, None, None)


def test_the_usage_of_older_servers() -> None:
    span, _ = call_of(usage={"input": 12, "output": 3, "unit": "TOKENS"}, calculatedTotalCost=0.001)
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (12, 3, 1000)
