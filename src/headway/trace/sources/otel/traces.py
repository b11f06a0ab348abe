"""Raw spans gathered into the traces that they belong to, however far apart they were recorded."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from headway.core.task import TaskId
from headway.trace.sources.digests import span_id, task_id
from headway.trace.sources.fields.flush import flushed, without_times
from headway.trace.sources.fields.identities import span_of, task_of
from headway.trace.sources.otel.reading import Reader, Reading
from headway.trace.sources.otel.units import rescaled
from headway.trace.sources.otel.whole import whole
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece, Timing
from headway.wire.otel import SPAN_DIGITS, RawSpan, sound

_HEX: Final = "0123456789abcdef"


class Traces:
    """The traces of one import. Spans wait encoded, which takes a quarter of their memory.

    Args:
        source: name of the format, for ids that have to be made.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._reader = Reader()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[Reading])
        self._tasks: dict[str, TaskId] = {}
        self._waiting: dict[TaskId, list[bytes]] = {}

    def add(self, spans: Sequence[RawSpan], where: str, skips: Skips) -> None:
        """Spans that were recorded together."""
        found: dict[str, list[Reading]] = {}
        if not sound(spans):
            for number, raw in enumerate(spans):
                self._name(raw, where, number)
        wrong = frozenset(rescaled(spans))
        for number, raw in enumerate(spans):
            reading = self._reader.read(raw)
            for reason in reading.left_unknown:
                skips.add(reason, where)
            found.setdefault(raw.trace, []).append(
                structs.replace(reading, rescaled=True) if number in wrong else reading
            )
        for task, readings in found.items():
            self._waiting.setdefault(TaskId(task), []).append(self._encoder.encode(readings))

    def pieces(self) -> Iterator[Piece]:
        """Every trace, in the order in which they were first met."""
        for task, fragments in self.fragments():
            yield self.piece(task, fragments)

    def fragments(self) -> Iterator[tuple[TaskId, list[bytes]]]:
        """The same, not yet put together."""
        while self._waiting:
            task = next(iter(self._waiting))
            yield task, self._waiting.pop(task)

    def piece(self, task: TaskId, fragments: Sequence[bytes]) -> Piece:
        """One trace out of its fragments, wherever they come from."""
        trace = whole([one for batch in fragments for one in self._decoder.decode(batch)])
        spans, remarks = trace.spans, trace.remarks
        timing: Timing = "spans"
        extent = None
        if flushed(spans):
            spans, remark, extent = without_times(spans)
            timing, remarks = "none", (remark, *remarks)
        return Piece(task=task, spans=spans, timing=timing, extent=extent, title=trace.title, remarks=remarks)

    def _name(self, raw: RawSpan, where: str, number: int) -> None:
        """Give the span its canonical ids; what has no trace is one by itself."""
        task = self._tasks.get(raw.trace)
        if task is None:
            task = task_of(self._source, raw.trace) if raw.trace else task_id(self._source, where, str(number))
            if raw.trace:
                self._tasks[raw.trace] = task
        raw.trace = task
        if len(raw.id) != SPAN_DIGITS or raw.id.strip(_HEX):
            raw.id = span_of(self._source, task, raw.id) if raw.id else span_id(self._source, where, str(number))
        if raw.parent is not None and (len(raw.parent) != SPAN_DIGITS or raw.parent.strip(_HEX)):
            raw.parent = span_of(self._source, task, raw.parent)


def is_id(text: str, digits: int) -> bool:
    """Whether it is an id as W3C trace context has them: so many lower-case hex digits."""
    return len(text) == digits and not text.strip(_HEX)
