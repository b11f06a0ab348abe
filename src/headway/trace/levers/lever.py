"""A lever, and what it saves in tokens and money."""

from collections.abc import Iterable, Sequence
from math import floor, inf
from typing import Final

from msgspec import Struct

from headway.core.money import MicroUsd, money
from headway.core.spent import NOTHING, Sum, summed
from headway.trace.change import Change
from headway.trace.charges import charges_of, spent_by
from headway.trace.levers.case import Case

_ROUNDING: Final = 1e-6
"""Of a token: what a share of whole numbers may lack of one by floating point."""


Stays = tuple[str, str]
"""A sentence, and how it reads of any task, without numbers; empty where nothing is to be said."""


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
    """At most what the task cost; negative: dearer."""
    tokens_least: int | None = None
    """What of the tokens is known, also where not all is; unknown where nothing is."""
    cost_least: MicroUsd | None = None
    assumes: str
    tradeoff: str
    """What it may cost in quality, money or work."""
    rule: str
    """The rule of thumb behind it."""
    how: str
    """How to do it."""
    stays: Stays = ("", "")
    """What of this task is left as recorded, which ``assumes`` ends with."""


class Saved(Struct, frozen=True):
    """Tokens, and money in micro-USD, over the calls that a change touches."""

    tokens: Sum = NOTHING
    cost: Sum = NOTHING


UNTOLD: Final = Saved(Sum(0, 0, 1), Sum(0, 0, 1))
"""Nothing of it is known."""


class Advice(Struct, frozen=True, kw_only=True):
    """What a lever says in words."""

    key: str
    name: str
    assumes: str
    tradeoff: str
    rule: str
    how: str
    stays: Stays = ("", "")


def predicted(case: Case, change: Change, saved: Saved, advice: Advice, most: float = inf) -> Lever:
    """The lever whose saving is what the replay of ``case`` with ``change`` is shorter by, at most ``most`` seconds."""
    seconds = min(change.saving(), most)
    share = seconds / case.study.e2e if case.study.e2e else 0.0
    cost = at_most(saved.cost, case.paid)
    return Lever(
        key=advice.key,
        name=advice.name,
        seconds=seconds,
        share=share,
        tokens=saved.tokens.exact,
        cost=money(cost.exact),
        tokens_least=saved.tokens.least,
        cost_least=money(cost.least),
        assumes=f"{advice.assumes} {advice.stays[0]}".rstrip(),
        tradeoff=advice.tradeoff,
        rule=advice.rule,
        how=advice.how,
        stays=advice.stays,
    )


def spared(case: Case, calls: Iterable[int]) -> Saved:
    """What calls that are not made do not read, write and cost."""
    made = [(call, span.start) for span, call in map(case.call, calls)]
    spent = spent_by(charges_of(made, case.prices))
    return Saved(spent.tokens, spent.cost)


def part(saved: Saved, share: float) -> Saved:
    """That share of it, rounded down."""
    return Saved(_part(saved.tokens, share), _part(saved.cost, share))


def _part(one: Sum, share: float) -> Sum:
    return Sum(rounded_down(one.total * share), one.known, one.of)


def rounded_down(value: float) -> int:
    """Of a saving no more is told than there is."""
    return floor(value + _ROUNDING)


def at_most(one: Sum, whole: int) -> Sum:
    """A sum of exact parts of rounded costs may pass what these add up to by as little as was rounded off."""
    return Sum(min(one.total, whole), one.known, one.of)


def micro(per_million: Sequence[int | None]) -> Sum:
    """Tokens times price per million of them, summed; a saving is rounded down."""
    whole = summed(per_million)
    return Sum(whole.total // 1_000_000, whole.known, whole.of)
