"""A task put away: its row, how far to trust it, and its spans packed up."""

import zlib
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.span import Span
from headway.core.task import TaskId
from headway.trace.facts import TaskFacts, facts_of
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.intake import Imported
from headway.trace.sources.verdict import Verdict

_LEVEL: Final = 1
"""Of compression: the quickest, which leaves a quarter. The best leaves a fifth and takes eight times as long."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_SPANS: Final = msgspec.msgpack.Decoder(tuple[Span, ...])


class Filed(Struct, frozen=True, kw_only=True):
    """One task of a set, its spans no longer at hand but not lost."""

    facts: TaskFacts
    verdict: Verdict
    packed: bytes

    @property
    def task(self) -> TaskId:
        """Its id."""
        return self.facts.task

    def spans(self) -> tuple[Span, ...]:
        """Its spans, as they were."""
        return unpack(self.packed)


def put_away(one: Imported, prices: PriceOf = price_for) -> Filed:
    """Work out the row of a task and pack it up."""
    facts = facts_of(one.spans, one.verdict, title=one.title, prices=prices)
    return Filed(facts=facts, verdict=one.verdict, packed=pack(one.spans))


def pack(spans: tuple[Span, ...]) -> bytes:
    """Spans in few bytes."""
    return zlib.compress(_ENCODER.encode(spans), _LEVEL)


def unpack(packed: bytes) -> tuple[Span, ...]:
    """The spans that were packed.

    Raises:
        zlib.error: damaged.
        msgspec.MsgspecError: no spans.
    """
    return _SPANS.decode(zlib.decompress(packed))
