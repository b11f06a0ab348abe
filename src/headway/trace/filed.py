"""A task put away: its row, how far to trust it, and its spans packed up."""

import zlib
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.span import Span
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.intake import Imported
from headway.trace.sources.verdict import Verdict

_LEVEL: Final = 1
"""Of compression: the quickest, which leaves a quarter. The best leaves a fifth and takes eight times as long."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_SPANS: Final = msgspec.msgpack.Decoder(tuple[Span, ...])


class Row(Protocol):
    """One task of a set, wherever its spans are kept."""

    @property
    def facts(self) -> TaskFacts:
        """What a set is told by."""
        ...

    @property
    def verdict(self) -> Verdict:
        """How far to trust it."""
        ...

    @property
    def packed(self) -> bytes:
        """Its spans, for `unpack`."""
        ...


class Filed(Struct, frozen=True, kw_only=True):
    """One task of a set, its spans no longer at hand but not lost."""

    facts: TaskFacts
    verdict: Verdict
    packed: bytes


def put_away(one: Imported, prices: PriceOf = price_for) -> Filed:
    """Work out the row of a task and pack it up."""
    facts = facts_of(one.spans, one.verdict, title=one.title, prices=prices)
    return Filed(facts=facts, verdict=one.verdict, packed=pack(one.spans))


def repriced(packed: bytes, verdict: Verdict, title: str | None, prices: PriceOf) -> Filed:
    """Work out the row of a task anew that was packed up before."""
    return Filed(facts=facts_of(unpack(packed), verdict, title=title, prices=prices), verdict=verdict, packed=packed)


def taken_out(row: Row) -> Imported:
    """The task as it was before it was put away."""
    return Imported(task=row.facts.task, title=row.facts.title, spans=unpack(row.packed), verdict=row.verdict)


def pack(spans: tuple[Span, ...]) -> bytes:
    """Spans in few bytes."""
    return zlib.compress(_ENCODER.encode(spans), _LEVEL)


def unpack(packed: bytes) -> tuple[Span, ...]:
    """The spans that were packed.

    Raises:
        BadInputError: damaged.
    """
    try:
        return _SPANS.decode(zlib.decompress(packed))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise BadInputError(
            f"The packed spans of a task are damaged: {error}.", fix="Import its files anew."
        ) from error
