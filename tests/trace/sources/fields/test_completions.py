import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.usage import Usage
from headway.trace.sources.fields.completions import (
    Counts,
    Details,
    Response,
    as_counts,
    inclusive,
    micro_usd,
    tool_calls,
)

COUNT = st.none() | st.integers(0, 10**6)


def test_usage_of_chat_completions() -> None:
    counts = Counts(
        prompt_tokens=100,
        completion_tokens=20,
        prompt_tokens_details=Details(cached_tokens=60),
        completion_tokens_details=Details(reasoning_tokens=15),
    )
    assert counts.usage() == Usage(input_tokens=100, output_tokens=20, cache_read=60, reasoning=15)


def test_usage_of_responses() -> None:
    counts = Counts(
        input_tokens=10, output_tokens=0, input_tokens_details=Details(cached_tokens=3, cache_write_tokens=7)
    )
    assert counts.usage() == Usage(input_tokens=10, output_tokens=0, cache_read=3, cache_write=7)


def test_usage_of_anthropic_leaves_the_cache_out_of_the_input() -> None:
    counts = Counts(input_tokens=4, output_tokens=9, cache_read_input_tokens=1000, cache_creation_input_tokens=50)
    assert counts.usage() == Usage(input_tokens=1054, output_tokens=9, cache_read=1000, cache_write=50)


def test_nothing_counted_is_unknown() -> None:
    assert Counts(prompt_tokens=0, completion_tokens=0).usage() == Usage()


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_input_always_holds_the_cache(
    given_: int | None, written: int | None, read: int | None, cached: int | None
) -> None:
    usage = inclusive(given_, written, read, cached)
    if usage.input_tokens is not None:
        assert usage.input_tokens >= (usage.cache_read or 0) + (usage.cache_write or 0)


@pytest.mark.parametrize(
    ("dollars", "micro"),
    [(0.0000005, 1), (0.00000049, 0), (1.25, 1_250_000), (-1.0, None), (float("nan"), None), (None, None)],
)
def test_money_is_rounded_half_up(dollars: float | None, micro: int | None) -> None:
    assert micro_usd(dollars) == micro


def test_a_response_tells_its_tools_and_what_they_are_called_with() -> None:
    function = {"name": "ls", "arguments": '{"a": 1}'}
    chat = msgspec.convert(
        {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}}]}, Response
    )
    whole = msgspec.convert({"output": [{"type": "function_call", "call_id": "c1", **function}]}, Response)
    for response in (chat, whole):
        assert [(call.id, call.name) for call in tool_calls(response.said())] == [("c1", "ls")]
        assert response.arguments() == {"c1": '{"a": 1}'}


def test_counts_are_read_without_those_that_are_none() -> None:
    assert as_counts({"prompt_tokens": -1, "completion_tokens": "7", "total_tokens": 6}) == Counts(completion_tokens=7)
    assert as_counts(None) is None
    assert as_counts([1]) is None
