"""A lever, and what it saves in tokens and money."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.prices import charge

_ROUNDING: Final = 1e-6
"""Of a token: what a share of whole numbers may lack of one by floating point."""


class Lever(Struct, frozen=True, kw_only=True):
    """A change and its predicted saving on one task."""

    key: str
    """Stable over tasks, e.g. ``half-the-iterations``; ``name`` may carry a number."""
    name: str
    """Short imperative, e.g. "one iteration fewer"."""
    seconds: float
    """E2E now - E2E of the replay; never negative."""
    share: float
    """``seconds`` / E2E."""
    tokens: int | None
    """Tokens neither read nor written any more (for a cache: read from it, not computed); unknown stays unknown."""
    cost: MicroUsd | None
    assumes: str
    tradeoff: str
    """What it may cost in quality, money or work."""
    rule: str
    """The rule of thumb behind it."""
    how: str
    """How to do it."""


class Saved(Struct, frozen=True):
    """Tokens and money; ``None`` is unknown."""

    tokens: int | None = 0
    cost: MicroUsd | None = MicroUsd(0)


class Advice(Struct, frozen=True, kw_only=True):
    """What a lever says in words."""

    key: str
    name: str
    assumes: str
    tradeoff: str
    rule: str
    how: str


def predicted(case: Case, change: Change, saved: Saved, advice: Advice) -> Lever:
    """The lever whose saving is what the replay of ``case`` with ``change`` is shorter by."""
    seconds = change.saving()
    share = seconds / case.study.e2e if case.study.e2e else 0.0
    return Lever(
        key=advice.key,
        name=advice.name,
        seconds=seconds,
        share=share,
        tokens=saved.tokens,
        cost=saved.cost,
        assumes=advice.assumes,
        tradeoff=advice.tradeoff,
        rule=advice.rule,
        how=advice.how,
    )


def spared(case: Case, calls: Iterable[int]) -> Saved:
    """What calls that are not made do not read, write and cost."""
    tokens: list[int | None] = []
    cost: list[int | None] = []
    for span, call in map(case.call, calls):
        read, written = call.usage.input_tokens, call.usage.output_tokens
        tokens.append(None if read is None or written is None else read + written)
        cost.append(charge(call, span.start, case.prices))
    money = total(cost)
    return Saved(total(tokens), None if money is None else MicroUsd(money))


def part(saved: Saved, share: float) -> Saved:
    """That share of it, rounded down."""
    return Saved(
        None if saved.tokens is None else int(saved.tokens * share + _ROUNDING),
        None if saved.cost is None else MicroUsd(int(saved.cost * share + _ROUNDING)),
    )


def total(counts: Sequence[int | None]) -> int | None:
    """The sum; unknown when any of them is."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def micro(per_million: Sequence[int | None]) -> MicroUsd | None:
    """Tokens times price per million of them, summed; a saving is rounded down."""
    whole = total(per_million)
    return None if whole is None else MicroUsd(whole // 1_000_000)
