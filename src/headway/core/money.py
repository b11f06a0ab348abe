"""Money as integers: micro-USD, so that sums and limits are exact."""

from typing import NewType

from msgspec import Struct

from headway.core.usage import Usage

MicroUsd = NewType("MicroUsd", int)
"""One millionth of a US dollar."""


class Price(Struct, frozen=True, kw_only=True):
    """Price of one model in micro-USD per million tokens (so 0.15 USD/Mtok is 150_000)."""

    input: int
    output: int
    cache_read: int | None = None
    """``None``: cached tokens cost as much as any other input."""
    cache_write: int | None = None

    @property
    def cheaper(self) -> int:
        """How much less a token costs that is read from the cache."""
        return 0 if self.cache_read is None else self.input - self.cache_read


def cost(usage: Usage, price: Price) -> MicroUsd | None:
    """Cost of a call, rounded up to a whole micro-USD, so that no limit on money is passed by calls that cost less.

    Unknown where `listed` is.
    """
    exact = _exact(usage, price)
    return None if exact is None else MicroUsd(-(-exact // 1_000_000))


def listed(usage: Usage, price: Price) -> MicroUsd | None:
    """Cost of a call, half a micro-USD rounded up; ``None`` when a token count it needs is unknown.

    Cached tokens are part of ``input_tokens`` (see `Usage`), so each token is charged once: at the cache's price
    where there is one, else at the input's. An unknown ``cache_read`` leaves the cost unknown where the price
    differs for cached tokens, and so do cached tokens that are more than the input they are part of.
    """
    exact = _exact(usage, price)
    return None if exact is None else MicroUsd((exact + 500_000) // 1_000_000)


def _exact(usage: Usage, price: Price) -> int | None:
    """In millionths of a micro-USD."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    plain, total = usage.input_tokens, 0
    for count, special in ((usage.cache_read, price.cache_read), (usage.cache_write, price.cache_write)):
        if special is None or special == price.input:
            continue
        if count is None:
            return None
        plain -= count
        total += count * special
    if plain < 0:
        return None
    return total + plain * price.input + usage.output_tokens * price.output


def cost_at_least(usage: Usage, price: Price) -> MicroUsd:
    """What a call cost at least, rounded down: what is unknown of its tokens counts as none, or at its cheapest.

    Where it is unknown how many were read from the cache, all may have been; how many were written to it, none, where
    that costs more than input does.
    """
    plain, total, cheapest = usage.input_tokens or 0, (usage.output_tokens or 0) * price.output, price.input
    for count, special in ((usage.cache_read, price.cache_read), (usage.cache_write, price.cache_write)):
        if special is None:
            continue
        if count is None:
            cheapest = min(cheapest, special)
        else:
            plain -= count
            total += count * special
    return MicroUsd(0 if plain < 0 else (total + plain * cheapest) // 1_000_000)


def money(micro_usd: int | None) -> MicroUsd | None:
    """A count of micro-USD as money."""
    return None if micro_usd is None else MicroUsd(micro_usd)
