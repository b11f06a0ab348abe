"""What calls took in tokens and money: sums that say how much of themselves is known."""

from collections.abc import Iterable, Sequence

from msgspec import Struct


class Sum(Struct, frozen=True, array_like=True, gc=False):
    """A sum whose parts may be unknown. What is known of it is a lower bound, since no part is negative."""

    total: int
    """Of what is known."""
    known: int
    """Parts that are known in full..."""
    of: int
    """...out of so many."""

    @property
    def exact(self) -> int | None:
        """The sum; ``None`` where any part of it is unknown."""
        return self.total if self.known == self.of else None

    @property
    def least(self) -> int | None:
        """What it comes to at least; ``None`` where that is no more than any sum comes to, which is nothing."""
        return self.total if self.total or self.known == self.of else None

    @property
    def partial(self) -> bool:
        """Whether it is a lower bound and no more."""
        return self.exact is None and self.least is not None


NOTHING = Sum(0, 0, 0)
"""The sum of no parts, which is 0 and known."""


class Spent(Struct, frozen=True, kw_only=True, array_like=True):
    """What some calls took. Each field's parts are the calls."""

    input_tokens: Sum = NOTHING
    output_tokens: Sum = NOTHING
    tokens: Sum = NOTHING
    """Input and output together; a call is known in full where both are."""
    cache_read: Sum = NOTHING
    cost: Sum = NOTHING
    """Micro-USD."""
    cache_told: Sum = NOTHING
    """Input tokens of the calls that tell what of them came from a cache: what `cached_share` is of."""

    @property
    def cached_share(self) -> float | None:
        """Cache reads / input tokens of the calls that tell both: of all calls only where `cache_told` is exact."""
        of = self.cache_told
        return self.cache_read.total / of.total if of.total and of.known == self.cache_read.known else None


def summed(counts: Iterable[int | None]) -> Sum:
    """Add up counts, of which ``None`` is unknown."""
    total = known = of = 0
    for count in counts:
        of += 1
        if count is not None:
            total += count
            known += 1
    return Sum(total, known, of)


def added(sums: Iterable[Sum]) -> Sum:
    """Add up sums: the parts of all of them are its parts."""
    total = known = of = 0
    for one in sums:
        total += one.total
        known += one.known
        of += one.of
    return Sum(total, known, of)


def together(all_spent: Sequence[Spent]) -> Spent:
    """What all of them took."""
    return Spent(
        input_tokens=added([one.input_tokens for one in all_spent]),
        output_tokens=added([one.output_tokens for one in all_spent]),
        tokens=added([one.tokens for one in all_spent]),
        cache_read=added([one.cache_read for one in all_spent]),
        cost=added([one.cost for one in all_spent]),
        cache_told=added([one.cache_told for one in all_spent]),
    )
