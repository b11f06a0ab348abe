"""What calls cost, and what they took in all, as far as they tell: the price of each is looked up once."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from headway.core.money import MicroUsd, Price, listed
from headway.core.span import ModelCall
from headway.core.spent import Spent, Sum, summed
from headway.core.usage import Usage
from headway.trace.prices import PriceOf, charge, charge_at_least

_FREE: Final = Price(input=0, output=0)
_ROUNDING: Final = 1
"""Micro-USD by which a recorded cost and the same by price may differ: both are whole numbers."""


class Charges(Struct, frozen=True):
    """Some calls, and what is known of the cost of each: lists of one length."""

    calls: Sequence[ModelCall]
    prices: Sequence[Price | None]
    """Of their tokens; ``None`` where it is unknown, and where the cost was recorded, which needs none."""
    costs: Sequence[MicroUsd | None]


def charges_of(made: Iterable[tuple[ModelCall, float]], prices: PriceOf) -> Charges:
    """Look up what calls cost.

    Args:
        made: each call once, and when it started.
        prices: prices of calls whose cost was not recorded.
    """
    pairs = list(made)
    calls = [call for call, _ in pairs]
    priced = [None if call.cost is not None else prices(call, at) for call, at in pairs]
    return Charges(calls, priced, list(map(charge, calls, priced)))


def of_parts(prices: PriceOf) -> PriceOf:
    """Prices that hold for some of a call's tokens, as those are that a change would save.

    Where a call's recorded cost is not what its tokens come to by price, how it splits over them is unknown, and so is
    their price: there may have been a discount, a fee, a cache that was charged otherwise. What cost nothing is free.
    Where it is unknown what came from a cache, a cost may still show that nothing did.
    """

    def price(call: ModelCall, at: float) -> Price | None:
        if call.cost == 0:
            return _FREE
        found = prices(call, at)
        if found is None or call.cost is None:
            return found
        by_price = listed(_told(call.usage), found)
        return found if by_price is not None and abs(by_price - call.cost) <= _ROUNDING else None

    return price


def _told(usage: Usage) -> Usage:
    return structs.replace(usage, cache_read=usage.cache_read or 0, cache_write=usage.cache_write or 0)


def spent_by(charges: Charges) -> Spent:
    """What the calls took, as far as they tell."""
    usages, costs = [call.usage for call in charges.calls], charges.costs
    known = [cost for cost in costs if cost is not None]
    paid = sum(known)
    if len(known) < len(costs):
        rows = zip(charges.calls, charges.prices, costs, strict=True)
        paid += sum([charge_at_least(call, price) for call, price, cost in rows if cost is None])
    read = summed([usage.input_tokens for usage in usages])
    written = summed([usage.output_tokens for usage in usages])
    told = sum([usage.input_tokens is not None and usage.output_tokens is not None for usage in usages])
    return Spent(
        input_tokens=read,
        output_tokens=written,
        tokens=Sum(read.total + written.total, told, len(usages)),
        cache_read=summed([usage.cache_read for usage in usages]),
        cost=Sum(paid, len(known), len(costs)),
        cache_told=summed([None if usage.cache_read is None else usage.input_tokens for usage in usages]),
    )
