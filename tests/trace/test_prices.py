import subprocess
import sys

import pytest

from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.trace.prices import charge, price_for, price_of

MINI = Price(input=150_000, output=600_000, cache_read=75_000)
MARCH_1_2026 = 1_772_323_200.0
DAY = 86_400.0


def test_a_price_in_micro_usd_per_million_tokens() -> None:
    assert price_of("gpt-4o-mini", "openai") == MINI
    assert price_of("gpt-4o-mini", None) == MINI  # only its maker sells it


@pytest.mark.parametrize("provider", ["azure.ai.openai", "az.ai.openai", "Azure.AI.Inference"])
def test_opentelemetrys_provider_names_old_and_new(provider: str) -> None:
    assert price_of("gpt-4o-mini", provider) == MINI


@pytest.mark.parametrize("provider", ["gcp.gemini", "gcp.vertex_ai", "gemini", "vertex_ai", "gcp.gen_ai"])
def test_googles_several_names(provider: str) -> None:
    found = price_of("gemini-2.0-flash", provider)
    assert found is not None
    assert (found.input, found.output) == (100_000, 400_000)


def test_the_prompts_length_chooses_the_tier_and_without_it_the_price_is_unknown() -> None:
    short = Price(input=3_000_000, output=15_000_000, cache_read=300_000, cache_write=3_750_000)
    long = Price(input=6_000_000, output=22_500_000, cache_read=600_000, cache_write=7_500_000)
    assert price_of("claude-sonnet-4-5", "anthropic", input_tokens=200_000) == short
    assert price_of("claude-sonnet-4-5", "anthropic", input_tokens=200_001) == long
    assert price_of("claude-sonnet-4-5", "anthropic", input_tokens=0) == short
    assert price_of("claude-sonnet-4-5", "anthropic") is None


def test_a_call_is_priced_by_its_own_day() -> None:
    # long prompts stopped costing more on 13 March
    prices = [
        price_of("claude-opus-4-6", "anthropic", input_tokens=300_000, at=MARCH_1_2026 + d * DAY) for d in (0, 13)
    ]
    assert [price.input for price in prices if price is not None] == [10_000_000, 5_000_000]


def test_a_call_is_priced_by_its_own_hour() -> None:
    # cheap from 16:30 to 00:30 UTC
    at = [MARCH_1_2026 + hour * 3600 for hour in (12, 16.4, 16.5, 23)]
    prices = [price_of("deepseek-chat", "deepseek", at=when) for when in at]
    assert [price.input for price in prices if price is not None] == [270_000, 270_000, 135_000, 135_000]


@pytest.mark.parametrize("provider", ["llama.cpp", "vllm", "ollama", "embedded", "SGLang"])
def test_what_one_runs_oneself_has_no_list_price(provider: str) -> None:
    assert price_of("gpt-oss-20b", provider) is None


@pytest.mark.parametrize("model", ["gpt-oss-20b", "gemma-3-27b-it", "deepseek-chat", "qwen3", "no-such-model", ""])
def test_a_name_alone_prices_nothing_that_anybody_may_run(model: str) -> None:
    assert price_of(model, None) is None


def test_an_unknown_model_or_provider_has_no_price() -> None:
    assert price_of("no-such-model", "openai") is None
    assert price_of("gpt-4o-mini", "no-such-provider") is None


def call(usage: Usage, *, cost: int | None = None) -> ModelCall:
    return ModelCall(model="gpt-4o-mini", provider="openai", usage=usage, cost=None if cost is None else MicroUsd(cost))


def test_cached_tokens_are_counted_once_and_priced_as_cached() -> None:
    # 800 cached x 0.075 + 200 x 0.15 + 100 x 0.6 micro-USD = 60 + 30 + 60; uncached it would be 210
    known = call(Usage(input_tokens=1000, output_tokens=100, cache_read=800))
    assert charge(known, price_for(known, MARCH_1_2026)) == 150


@pytest.mark.parametrize(("written", "told"), [(0, 0), (4, 2), (5, 3), (6, 4)])
def test_half_a_micro_usd_is_rounded_up_and_less_is_not(written: int, told: int) -> None:
    # 0.6 micro-USD each: 0, 2.4, 3.0 and 3.6
    assert charge(call(Usage(input_tokens=0, output_tokens=written, cache_read=0)), MINI) == told
    # 1 x 0.15 + 4 x 0.6 = 2.55; 2 x 0.15 + 2 x 0.6 = 1.5; 1 x 0.15 + 2 x 0.6 = 1.35
    for (read, wrote), paid in {(1, 4): 3, (2, 2): 2, (1, 2): 1}.items():
        assert charge(call(Usage(input_tokens=read, output_tokens=wrote, cache_read=0)), MINI) == paid


def test_the_recorded_cost_wins() -> None:
    assert charge(call(Usage(), cost=7), MINI) == 7


def test_missing_tokens_leave_the_cost_unknown() -> None:
    assert charge(call(Usage(input_tokens=1000, output_tokens=100)), MINI) is None
    assert charge(call(Usage(input_tokens=1000, cache_read=0)), MINI) is None


def test_the_table_is_loaded_only_when_a_price_is_asked_for_and_opens_no_connection() -> None:
    script = """
import sys
sys.addaudithook(lambda event, args: event.startswith("socket.connect") and sys.exit(event))
from headway.trace.prices import price_of
import headway.trace.anatomy
price_of("m", "llama.cpp")
assert "genai_prices" not in sys.modules
assert price_of("gpt-4o-mini", "openai") is not None
assert "genai_prices" in sys.modules
import threading
assert threading.active_count() == 1
"""
    run = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)  # noqa: S603 - our own script
    assert (run.returncode, run.stderr) == (0, "")
