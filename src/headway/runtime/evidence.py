"""Evidence: claims of which each keeps where it comes from, brought together in order and without duplicates.

Chunk for evidence, merge for judgement: each call reads one chunk and says what it found there; one call that sees all
of it, in order, judges.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from math import inf
from typing import Literal

from msgspec import Struct, structs

from headway.runtime.chunking import Origin
from headway.runtime.run import Run

Order = Literal[
    "time",  # as it happened
    "span",  # what belongs to one span together, the span that is first in time before the others
    "service",  # what one service did together, likewise
]


class Claim(Struct, frozen=True, kw_only=True):
    """Something that was found, and where."""

    text: str
    sources: tuple[Origin, ...]
    """Where it is to be read, by path and line; `Chunk.origin` makes one of a line that a model cites."""
    at: float | None = None
    """When it happened, in epoch seconds."""
    span: str | None = None
    """The id of the span that it is about."""
    service: str | None = None

    @property
    def written(self) -> str:
        """One line: when, by which service, what, and where to read it."""
        moment = None if self.at is None else _moment(self.at)
        who = ", ".join(part for part in (moment, self.service, self.span and f"span {self.span}") if part)
        where = "; ".join(map(str, self.sources))
        return f"{f'[{who}] ' if who else ''}{' '.join(self.text.split())} ({where})"


def merged(parts: Iterable[Iterable[Claim]], order: Order = "time") -> tuple[Claim, ...]:
    """Bring claims together: in order, each once, with all its sources.

    Claims are the same that say the same, but for white space and capitals, of the same time, span and service; two
    that differ in any of these are two pieces of evidence. What is of unknown time comes last. Claims that may go
    either way keep the order of their sources, so it makes no difference in which portions they are merged.
    """
    found: dict[tuple[str, float | None, str | None, str | None], Claim] = {}
    for claim in (claim for part in parts for claim in part):
        same = (" ".join(claim.text.split()).casefold(), claim.at, claim.span, claim.service)
        known = found.get(same)
        if known is None:
            found[same] = structs.replace(claim, sources=tuple(sorted(set(claim.sources))))
        else:
            sources = tuple(sorted({*known.sources, *claim.sources}))
            found[same] = structs.replace(known, text=min(known.text, claim.text), sources=sources)
    claims = sorted(found.values(), key=_when)
    match order:
        case "time":
            return tuple(claims)
        case "span":
            return _together(claims, [claim.span for claim in claims])
        case "service":
            return _together(claims, [claim.service for claim in claims])


def _when(claim: Claim) -> tuple[float, tuple[Origin, ...], str, str, str]:
    at = inf if claim.at is None else claim.at
    return at, claim.sources, claim.text, repr(claim.service), repr(claim.span)


def _together(claims: Sequence[Claim], groups: Sequence[str | None]) -> tuple[Claim, ...]:
    """Claims in the order of their groups, which are ordered by their first; those of none come last."""
    first: dict[str | None, int] = {}
    for at, group in enumerate(groups):
        first.setdefault(group, len(claims) if group is None else at)
    ranks = [first[group] for group in groups]
    return tuple(claims[at] for at in sorted(range(len(claims)), key=lambda at: (ranks[at], at)))


def merging(order: Order = "time") -> Callable[[Run, list[tuple[Claim, ...]]], Awaitable[tuple[Claim, ...]]]:
    """`merged` as `Run.reduce` takes it."""

    async def merge(_run: Run, parts: list[tuple[Claim, ...]]) -> tuple[Claim, ...]:
        return merged(parts, order)

    return merge


def written(claims: Iterable[Claim]) -> str:
    """Claims for a model that is to judge them, a line each, with when, who and where."""
    return "".join(f"- {claim.written}\n" for claim in claims)


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):  # beyond the calendar
        return f"{at:g}"
