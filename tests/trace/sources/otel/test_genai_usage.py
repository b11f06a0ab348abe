"""Tokens and money of a call under the name that each dialect gives them."""

import json

import pytest
from genai_spans import CHAT, Attributes, call, meant

from headway.core.span import Step
from headway.core.usage import Usage


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_write.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        {  # Traceloop
            "gen_ai.usage.prompt_tokens": "100",
            "gen_ai.usage.completion_tokens": "20",
            "gen_ai.usage.cache_read_input_tokens": "60",
            "gen_ai.usage.cache_creation_input_tokens": "30",
            "gen_ai.usage.reasoning_tokens": "5",
        },
        {  # OpenInference
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 20,
            "llm.token_count.prompt_details.cache_read": 60,
            "llm.token_count.prompt_details.cache_write": 30,
            "llm.token_count.completion_details.reasoning": 5,
        },
        {  # Vercel AI SDK
            "ai.usage.inputTokens": 100,
            "ai.usage.outputTokens": 20,
            "ai.usage.cachedInputTokens": 60,
            "ai.usage.inputTokenDetails.cacheWriteTokens": 30,
            "ai.usage.reasoningTokens": 5,
        },
        {  # Sentry
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.input_tokens.cached": 60,
            "gen_ai.usage.input_tokens.cache_write": 30,
            "gen_ai.usage.output_tokens.reasoning": 5,
        },
        {  # Pydantic AI
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.details.cache_read_tokens": 60,
            "gen_ai.usage.details.cache_write_tokens": 30,
            "gen_ai.usage.details.reasoning_tokens": 5,
        },
        {  # Gemini CLI
            "input_token_count": 100,
            "output_token_count": 20,
            "cached_content_token_count": 60,
            "gen_ai.usage.cache_write.input_tokens": 30,
            "thoughts_token_count": 5,
        },
        {  # MLflow, whose counts are one object
            "mlflow.chat.tokenUsage": json.dumps(
                {
                    "input_tokens": 100,
                    "output_tokens": 20,
                    "cache_read_input_tokens": 60,
                    "cache_creation_input_tokens": 30,
                }
            ),
            "gen_ai.usage.reasoning_tokens": 5,
        },
    ],
)
def test_tokens_by_every_name_are_the_same_tokens(attributes: Attributes) -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cache_read=60, cache_write=30, reasoning=5)
    assert call(CHAT | attributes).usage == usage


def test_cache_tokens_are_not_counted_twice_where_the_input_holds_them() -> None:
    usage = call(CHAT | {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 90}).usage
    assert (usage.input_tokens, usage.cache_read) == (100, 90)


def test_an_input_smaller_than_what_was_cached_leaves_it_out_and_gets_it_added() -> None:
    usage = call(CHAT | {"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 90}).usage
    assert (usage.input_tokens, usage.cache_read) == (94, 90)


def test_claude_codes_bare_counts_leave_the_cache_out() -> None:
    counts: Attributes = {
        "span.type": "llm_request",
        "model": "m",
        "input_tokens": 500,  # more than was cached, so that only the dialect can tell
        "output_tokens": 20,
        "cache_read_tokens": 300,
        "cache_creation_tokens": 100,
    }
    usage = call(counts, "claude_code.llm_request").usage
    assert usage == Usage(input_tokens=900, output_tokens=20, cache_read=300, cache_write=100)


@pytest.mark.parametrize("counts", [{}, {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}])
def test_no_tokens_and_none_at_all_are_unknown(counts: Attributes) -> None:
    assert call(CHAT | counts).usage == Usage()


@pytest.mark.parametrize("count", ["many", -4, 1.5, True, "nan", 1e30, [], {}])
def test_a_count_that_is_none_is_unknown(count: object) -> None:
    assert call(CHAT | {"gen_ai.usage.input_tokens": count}).usage.input_tokens is None


def test_an_agents_sums_are_no_usage_of_its_own() -> None:
    sums: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.aggregated_usage.input_tokens": 900}
    assert meant(sums, "invoke_agent a").work == Step(agent="a")


@pytest.mark.parametrize(
    ("cost", "micro"),
    [(0.0000015, 2), ("0.25", 250_000), (0, 0), (-1, None), ("free", None)],
)
def test_recorded_costs_are_whole_micro_dollars(cost: object, micro: int | None) -> None:
    assert call(CHAT | {"operation.cost": cost}).cost == micro


def test_mlflows_cost_is_the_total() -> None:
    cost = {"mlflow.llm.cost": json.dumps({"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3})}
    assert call(CHAT | cost).cost == 300_000
