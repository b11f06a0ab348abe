"""The recorder: takes spans from the data path without ever making it wait, and writes them from a thread."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol, Self

from headway.core.errors import HeadwayError
from headway.core.span import Span

_log = logging.getLogger(__name__)

_BATCH = 1024
"""Spans per transaction: a lock held for about 10 ms, and what a crash can lose of what was being written."""
_CALM = 32
"""Spans in a write that no request notices: when more come within an interval they are written more often."""
_GRACE = 5.0
"""Seconds that the attempt being made when `Recorder.close` gives up may still take; a store's own patience."""


class SpanSink(Protocol):
    """Where spans end up; `headway.trace.store.Store` is one."""

    @property
    def lost(self) -> int:
        """Spans that were written and are gone again."""
        ...

    def write(self, spans: Sequence[Span]) -> None:
        """Write all of ``spans`` or none; writing one again replaces it.

        Raises:
            HeadwayError: not now; the same spans may be tried again.
            Exception: never; one of the spans cannot be written at all.
        """
        ...


class Recorder:
    """A bounded buffer of spans and the thread that empties it into a store, which stays the caller's to close.

    ``recorded`` counts spans that were written to the store; ``dropped`` those that never were: the buffer was full,
    they could not be encoded, the store could not be written before `close` gave up. Every span taken is in exactly one
    of the two. ``lost`` counts those of the recorded whose file was taken away afterwards.

    Args:
        store: where spans go. It is only used from the recorder's thread.
        capacity: how many spans may wait; also how much an unwritable store can cost in memory.
        interval: seconds between two writes while spans trickle, fewer when they pour; a crash loses at most these.
        backoff: seconds until a failed write is tried again.
    """

    def __init__(self, store: SpanSink, capacity: int, *, interval: float = 0.1, backoff: float = 0.5) -> None:
        self.recorded = 0
        self.failed_writes = 0
        """How often the store refused a batch that was then tried again."""
        self._store = store
        self._capacity = capacity
        self._interval = interval
        self._backoff = backoff
        self._buffer: deque[Span] = deque()
        self._flushes: deque[threading.Event] = deque()
        self._wake = threading.Event()
        self._give_up_at: float | None = None
        self._overflowed = 0
        self._abandoned = 0
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="headway-recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dropped(self) -> int:
        """Spans that were never written."""
        return self._overflowed + self._abandoned

    @property
    def lost(self) -> int:
        """Spans that were written and are gone with their file."""
        return self._store.lost

    @property
    def waiting(self) -> int:
        """Spans that are in the buffer now."""
        return len(self._buffer)

    def record(self, span: Span) -> None:
        """Take ``span``; under a microsecond, from any thread. A full or closed recorder counts it as dropped."""
        if len(self._buffer) < self._capacity:
            self._buffer.append(span)
        else:
            with self._counting:
                self._overflowed += 1

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all that was recorded before is in the store, or was dropped.

        Returns:
            False when ``timeout`` seconds were not enough.
        """
        written = threading.Event()
        self._flushes.append(written)
        self._wake.set()
        return written.wait(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what is there and stop; what a stubborn store still refuses after ``timeout`` seconds is dropped."""
        self._capacity = 0
        self._give_up_at = time.monotonic() + timeout
        self._wake.set()
        self._thread.join(timeout + _GRACE)
        if self.dropped:
            taken = self.recorded + self.dropped
            _log.warning("spans dropped: %d of %d", self.dropped, taken, extra={"event": "spans_dropped"})

    def _run(self) -> None:
        pause = self._interval
        while self._give_up_at is None or self._buffer or self._flushes:
            self._wake.wait(pause)
            self._wake.clear()
            flushes = [self._flushes.popleft() for _ in range(len(self._flushes))]
            left = len(self._buffer)
            pause = self._interval * min(1.0, _CALM / max(left, 1))
            while left > 0:
                batch = [self._buffer.popleft() for _ in range(min(left, _BATCH))]
                left -= len(batch)
                self._write(batch)
            for written in flushes:
                written.set()

    def _write(self, batch: list[Span]) -> None:
        outage = False
        while not self._given_up():
            try:
                self._store.write(batch)
            except HeadwayError as error:
                self.failed_writes += 1
                if not outage:
                    _log.error("spans are kept waiting: %s", error, extra={"event": "store_down"})
                outage = True
                self._pause()
            except Exception:  # noqa: BLE001 - whatever it is, the thread must outlive it and say so
                self._find_the_bad(batch)
                return
            else:
                self.recorded += len(batch)
                if outage:
                    _log.warning("spans are written again", extra={"event": "store_up"})
                return
        self._abandoned += len(batch)

    def _find_the_bad(self, batch: list[Span]) -> None:
        if len(batch) > 1:
            for span in batch:
                self._write([span])
            return
        self._abandoned += 1
        _log.exception("a span cannot be written and is dropped")

    def _given_up(self) -> bool:
        return self._give_up_at is not None and time.monotonic() >= self._give_up_at

    def _pause(self) -> None:
        left = self._backoff if self._give_up_at is None else self._give_up_at - time.monotonic()
        self._wake.wait(max(0.0, min(self._backoff, left)))
        self._wake.clear()
