"""By time: the lines of several logs that were written in the same stretch of time, side by side."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from math import floor, inf, isfinite
from operator import attrgetter

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.runtime.chunking.chunk import Chunk, Document, Lined, Part
from headway.runtime.chunking.cutting import cut, most
from headway.runtime.chunking.measure import ESTIMATE, Measure, check
from headway.runtime.chunking.packing import chunk_of
from headway.runtime.chunking.stamps import Stamps


class _Record(Struct, frozen=True):
    """A line with a time, and the lines without that follow it."""

    window: float
    """Which, counted from the epoch; infinite where no time is known."""
    time: float
    log: int
    start: int
    end: int


def by_time(
    logs: Iterable[Document],
    window: float,
    budget: int,
    *,
    stamp: Callable[[str], float | None] | None = None,
    measure: Measure = ESTIMATE,
) -> list[Chunk]:
    """Gather the lines of all logs by windows of time, in its order; a window that does not fit is several chunks.

    Windows begin at whole multiples of ``window`` since the epoch, so those of an hour at the full hour UTC.
    A line without a time, as of a stack trace, stays with the line before it, and those before the first time of a log
    with that. A log without any time comes last, in chunks whose `Chunk.window` is ``None``. A record (a line with
    those that continue it) is cut only where it does not fit a chunk of its own.

    Args:
        logs: one document a log.
        window: seconds.
        budget: tokens that a chunk may have, the lines that name its sources among them.
        stamp: reads the time of a line, in epoch seconds, or ``None``; `Stamps` unless given.
        measure: how tokens are counted.

    Raises:
        BadInputError: the window is no time, a time names no year (see `Stamps`), or the budget does not even hold the
            line that names a log, and one character of it.
    """
    check(budget)
    if not (window > 0 and isfinite(window)):
        raise BadInputError(f"window={window} is no stretch of time.", fix="Give seconds above 0.")
    lined = [Lined(log) for log in logs]
    read = stamp or Stamps()
    records = [record for number, log in enumerate(lined) for record in _records(number, log, read, window)]
    records.sort(key=attrgetter("time", "log", "start"))
    chunks: list[Chunk] = []
    for number, group in groupby(records, key=attrgetter("window")):
        span = None if number == inf else (number * window, (number + 1) * window)
        chunks += [chunk_of(parts, measure, span) for parts in _fitted(list(group), lined, budget, measure)]
    return chunks


def _records(number: int, log: Lined, stamp: Callable[[str], float | None], window: float) -> Iterator[_Record]:
    times = [_time(log, line, stamp) for line in range(len(log.lines))]
    begins = [line for line, time in enumerate(times) if time is not None]
    first = times[begins[0]] if begins else None
    edges = [0, *begins[1:], len(times)] if begins else [0, len(times)]
    for line, after in pairwise(edges):
        time = times[line] if line else first
        end = log.starts[after] if after < len(times) else len(log.text)
        yield _Record(
            window=inf if time is None else floor(time / window),
            time=inf if time is None else time,
            log=number,
            start=log.starts[line],
            end=end,
        )


def _time(log: Lined, line: int, stamp: Callable[[str], float | None]) -> float | None:
    try:
        return stamp(log.lines[line])
    except BadInputError as error:
        raise BadInputError(f"{log.path}, line {line + 1}: {error.what}", fix=error.fix) from error


def _fitted(
    records: Sequence[_Record], logs: Sequence[Lined], budget: int, measure: Measure
) -> Iterator[tuple[Part, ...]]:
    at, before = 0, 1
    while at < len(records):

        def fits(count: int, at: int = at) -> bool:
            parts = _joined(records[at : at + count], logs)
            return measure.fits("".join(part.written for part in parts), budget)

        count = most(len(records) - at, fits, step=before)
        if count:
            yield _joined(records[at : at + count], logs)
        else:
            alone = records[at]
            yield from ((part,) for part in cut(logs[alone.log], alone.start, alone.end, budget, measure))
        at, before = at + max(1, count), max(1, count)


def _joined(records: Sequence[_Record], logs: Sequence[Lined]) -> tuple[Part, ...]:
    """Records as parts: those that follow one another in a log are one; the log with the earliest comes first."""
    by_log: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        by_log.setdefault(record.log, []).append((record.start, record.end))
    parts: list[Part] = []
    for log, stretches in by_log.items():
        joined: list[tuple[int, int]] = []
        for start, end in sorted(stretches):
            if joined and joined[-1][1] == start:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        parts += [logs[log].part(start, end) for start, end in joined]
    return tuple(parts)
