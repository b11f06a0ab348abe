"""What a model's tokens cost, from the price table that ships with ``genai-prices``; nothing is fetched."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from headway.core.money import MicroUsd, Price, cost_at_least, listed
from headway.core.span import ModelCall

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices

PROVIDERS = {
    "aws.bedrock": "aws",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "az.ai.inference": "azure",
    "az.ai.openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "gemini": "google",
    "vertex_ai": "google",
    "mistral_ai": "mistral",
    "x_ai": "x-ai",
    "xai": "x-ai",
}
"""OpenTelemetry's provider names (today's and yesterday's) to the table's, where they differ."""

LOCAL = frozenset(
    {
        "embedded",
        "headway",
        "llama.cpp",
        "llama_cpp",
        "lm_studio",
        "lmstudio",
        "local",
        "mlx",
        "ollama",
        "sglang",
        "tgi",
    }
    | {"vllm", "xllamacpp"}
)
"""Engines that one runs oneself: their tokens have no list price."""

GUESSABLE = frozenset({"anthropic", "google", "openai", "x-ai"})
"""Makers whose models are sold, not given away: only theirs are priced by the model's name alone."""
OPEN_WEIGHTS = ("gpt-oss", "gemma", "grok-1", "whisper", "gpt-2")
"""Of those makers, what anybody may run."""


QUARTER = 900
"""Seconds; prices by time of day change on the quarter hour."""
NEWEST = datetime(9999, 12, 31, 12, tzinfo=UTC)


PriceOf = Callable[[ModelCall, float], Price | None]
"""The price of a call's tokens, given when it started in epoch seconds; `price_for` is the real one."""


def price_of(
    model: str, provider: str | None, *, input_tokens: int | None = None, at: float | None = None
) -> Price | None:
    """Price per million tokens in micro-USD; ``None`` when it is unknown, as for local engines.

    Some models cost more for long prompts: ``input_tokens`` chooses their tier, and without it their price is unknown.
    Extras (web searches, images, audio, batch and priority service) are not in it.

    Args:
        model: the model's name.
        provider: its provider by OpenTelemetry's names; ``None``: known by the model's name, for makers whose models
            only they sell.
        input_tokens: length of the prompt, cached tokens included.
        at: epoch seconds of the call, for prices that changed; ``None``: the table's newest, at noon.
    """
    ladder = _ladder(model, provider, None if at is None else int(at // QUARTER))
    if input_tokens is None:
        return ladder[0][1] if len(ladder) == 1 else None
    for above, price in reversed(ladder):
        if input_tokens > above:
            return price
    return None


def price_for(call: ModelCall, at: float) -> Price | None:
    """The price of a call's tokens at its time and its prompt's length; ``None`` when unknown."""
    return price_of(call.model, call.provider, input_tokens=call.usage.input_tokens, at=at)


def with_own(prices: Mapping[str, Price]) -> PriceOf:
    """One's own prices by the model's name, before the list's."""
    return _Own(dict(prices)) if prices else price_for


class _Own(Struct, frozen=True):
    """A value, no closure, so that it can be handed to another process."""

    prices: dict[str, Price]

    def __call__(self, call: ModelCall, at: float) -> Price | None:
        return self.prices.get(call.model) or price_for(call, at)


def charge(call: ModelCall, price: Price | None) -> MicroUsd | None:
    """What a call cost: as recorded, else by price and tokens; ``None`` when either is unknown."""
    if call.cost is not None:
        return call.cost
    return None if price is None else listed(call.usage, price)


def charge_at_least(call: ModelCall, price: Price | None) -> MicroUsd:
    """What a call whose cost is unknown cost at least; 0 where no price is known."""
    return MicroUsd(0) if price is None else cost_at_least(call.usage, price)


@lru_cache(maxsize=4096)
def _ladder(model: str, provider: str | None, quarter: int | None) -> tuple[tuple[int, Price], ...]:
    """Prices by the number of input tokens above which they hold, lowest first; empty when unknown."""
    if provider is not None:
        provider = PROVIDERS.get(provider.lower(), provider.lower())
    if provider in LOCAL or not model:
        return ()
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - its import takes most of a second

    try:
        seller, found = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return ()
    if provider is None and (seller.id not in GUESSABLE or found.id.startswith(OPEN_WEIGHTS)):
        return ()
    when = NEWEST if quarter is None else datetime.fromtimestamp(quarter * QUARTER, UTC)
    table = found.get_prices(when)
    rates = [table.input_mtok, table.output_mtok, table.cache_read_mtok, table.cache_write_mtok]
    steps = {
        -1,
        *(tier.start for rate in rates if rate is not None and not isinstance(rate, Decimal) for tier in rate.tiers),
    }
    ladder: list[tuple[int, Price]] = []
    for above in sorted(steps):
        plain, output, read, write = (_micro(rate, above) for rate in rates)
        if plain is None or output is None:
            return ()
        ladder.append((above, Price(input=plain, output=output, cache_read=read, cache_write=write)))
    return tuple(ladder)


def _micro(rate: "Decimal | TieredPrices | None", above: int) -> int | None:
    """Micro-USD per million tokens of a prompt just longer than ``above``."""
    if rate is None:
        return None
    if not isinstance(rate, Decimal):
        rate = next((tier.price for tier in reversed(rate.tiers) if above >= tier.start), rate.base)
    return int((rate * 1_000_000).to_integral_value())
