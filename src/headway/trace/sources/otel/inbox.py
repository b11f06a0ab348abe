"""Spans that arrive while their traces still grow: each message is read with what is known of its traces already."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from headway.core.span import Span
from headway.core.task import SpanId
from headway.trace.sources.otel.reading import Reader, Reading
from headway.trace.sources.otel.traces import is_id
from headway.trace.sources.otel.units import rescaled
from headway.trace.sources.otel.whole import whole
from headway.wire.otel import SPAN_DIGITS, TRACE_DIGITS, RawSpan

NAMELESS: Final = "a span without a valid trace id and span id"
IMPOSSIBLE: Final = "Token counts and other numbers that cannot be (negative ones, for instance) were left unknown."
MOST_SPANS: Final = 100_000
"""Spans that are kept, those of the traces longest unheard of going first: about 60 MB."""
LARGEST_TRACE: Final = 10_000
"""Spans of one trace that are kept: beyond, what comes is read by itself, or each message would cost as much as all."""


class Taken(Struct, frozen=True):
    """What one message amounted to."""

    spans: list[Span]
    """New ones, and earlier ones that the new ones tell more of; to be written over what was there."""
    rejected: int
    """How many could not be used, for `NAMELESS`."""


class _Trace(Struct):
    readings: list[bytes]
    written: dict[SpanId, int]
    """Hash of each span as it was last given out."""


class Inbox:
    """Reads the messages of live traces. Not for more than one thread at a time.

    Args:
        most_spans: bound on what is kept, in spans.
        largest_trace: bound on what is kept of one trace.
    """

    def __init__(self, most_spans: int = MOST_SPANS, largest_trace: int = LARGEST_TRACE) -> None:
        self._most = most_spans
        self._largest = largest_trace
        self._reader = Reader()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Reading)
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        self._kept = 0

    def take(self, raws: Sequence[RawSpan]) -> Taken:
        """Read the spans of one message."""
        fresh: dict[str, list[bytes]] = {}
        rejected = 0
        wrong = frozenset(rescaled(raws))
        for number, raw in enumerate(raws):
            if is_id(raw.trace, TRACE_DIGITS) and is_id(raw.id, SPAN_DIGITS):
                reading = self._reader.read(raw)
                if number in wrong:
                    reading = structs.replace(reading, rescaled=True)
                fresh.setdefault(raw.trace, []).append(self._encoder.encode(reading))
            else:
                rejected += 1
        spans = [span for name, readings in fresh.items() for span in self._joined(name, readings)]
        self._forget()
        return Taken(spans, rejected)

    def _joined(self, name: str, fresh: list[bytes]) -> list[Span]:
        trace = self._traces.setdefault(name, _Trace([], {}))
        self._traces.move_to_end(name)
        if len(trace.readings) + len(fresh) > self._largest:
            self._kept -= len(trace.readings)
            trace.readings, trace.written = [], {}
        trace.readings += fresh
        self._kept += len(fresh)
        spans = _told([self._decoder.decode(one) for one in trace.readings])
        changed: list[Span] = []
        for span in spans:
            now = hash(self._encoder.encode(span))
            if trace.written.get(span.id) != now:
                trace.written[span.id] = now
                changed.append(span)
        return changed

    def _forget(self) -> None:
        while self._kept > self._most and len(self._traces) > 1:
            _, oldest = self._traces.popitem(last=False)
            self._kept -= len(oldest.readings)


def _told(readings: Sequence[Reading]) -> Sequence[Span]:
    """The spans of one trace, the earliest with what is to be said of them all."""
    unknown = any(reading.left_unknown for reading in readings)
    trace = whole(readings)
    remarks = (*trace.remarks, IMPOSSIBLE) if unknown else trace.remarks
    if not remarks:
        return trace.spans
    first = min(trace.spans, key=lambda span: (span.start, span.id))
    return [structs.replace(span, remarks=remarks) if span is first else span for span in trace.spans]
