"""Sums over calls for machines, known also where only some calls tell their part."""

from msgspec import Struct

from headway.core import spent


class Sum(Struct, frozen=True, kw_only=True):
    """A sum over calls as far as it is known; where ``known`` is less than ``of`` it is a lower bound."""

    sum: int | None
    """``null`` where that is 0 for all that is known of it, as any sum is at least: 0 stands for a sum that is 0."""
    known: int
    """Calls that tell all of theirs..."""
    of: int
    """...out of so many."""


class AtLeast(Struct, frozen=True, kw_only=True):
    """What calls took at least; each is exact where all of them tell."""

    input_tokens: Sum
    output_tokens: Sum
    tokens: Sum
    """Input and output together."""
    cache_read: Sum
    cost_usd_micro: Sum


class CachedShare(Struct, frozen=True, kw_only=True):
    """Cache reads / input tokens, of the calls that tell both."""

    share: float
    input_tokens: int
    """Of those calls: what it is a share of."""
    known: int
    """So many calls..."""
    of: int
    """...out of so many."""


def cached_share(took: spent.Spent) -> float | None:
    """Cache reads / input tokens; unknown unless every call tells both."""
    return None if took.cache_told.exact is None else took.cached_share


def cached_share_known(took: spent.Spent) -> CachedShare | None:
    """The same of the calls that tell both; ``None`` where none does."""
    of, share = took.cache_told, took.cached_share
    return None if share is None else CachedShare(share=share, input_tokens=of.total, known=of.known, of=of.of)


def at_least(took: spent.Spent) -> AtLeast:
    """What calls took, for machines."""
    return AtLeast(
        input_tokens=sum_of(took.input_tokens),
        output_tokens=sum_of(took.output_tokens),
        tokens=sum_of(took.tokens),
        cache_read=sum_of(took.cache_read),
        cost_usd_micro=sum_of(took.cost),
    )


def sum_of(one: spent.Sum) -> Sum:
    """A sum for machines."""
    return Sum(sum=one.least, known=one.known, of=one.of)
