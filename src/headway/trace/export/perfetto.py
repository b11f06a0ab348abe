"""Tasks for Perfetto's viewer, as the trace-event JSON that it and Chrome read.

Each task is a process; its critical path is one track, and its agents, model calls and tools are on as many tracks as
they need to lie side by side: on a track, slices only ever nest. Times are whole microseconds since the epoch, with
people's time taken out; what touches in a task touches here, since each moment is rounded once.
"""

from collections.abc import Iterable, Iterator
from math import isinf
from typing import Final, Literal, assert_never

import msgspec
from msgspec import Struct

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse, Work
from headway.trace.anatomy import Anatomy
from headway.trace.path import Segment
from headway.trace.waterfall import Bar

HEAD: Final = b'{"displayTimeUnit":"ms","traceEvents":['
"""What a file begins with; events follow with commas between."""
TAIL: Final = b"]}\n"

PATH: Final = 1
"""Thread id of the critical path."""
Kind = Literal["agent", "model calls", "tools"]
_KINDS: Final[tuple[Kind, ...]] = ("agent", "model calls", "tools")
_LANES: Final = 10_000
"""Thread ids kept for the tracks of one kind."""


class Event(Struct, frozen=True, omit_defaults=True):
    """One trace event: a complete slice (``X``) or a name (``M``)."""

    name: str
    ph: Literal["X", "M"]
    pid: int
    tid: int = 0
    ts: int | None = None
    """Microseconds."""
    dur: int | None = None
    args: dict[str, str | int | float] = {}


class _Lane(Struct):
    """One track: what is open on it where it was filled up to."""

    number: int
    open: list[tuple[int, float]]
    """Row and end of each slice, the innermost last."""
    named: bool = False


def events(anatomy: Anatomy, process: int, title: str | None = None) -> Iterator[Event]:
    """The events of one task.

    Args:
        anatomy: the task, taken apart; its record must keep times.
        process: a number of its own in the file.
        title: the first words of what the user asked.
    """
    name = f"task {anatomy.task}" + (f": {title}" if title else "")
    yield Event("process_name", "M", process, args={"name": name})
    yield Event("process_sort_index", "M", process, args={"sort_index": process})
    yield from _thread(process, PATH, "critical path")
    yield from _path(anatomy, process)
    lanes: dict[Kind, list[_Lane]] = {kind: [] for kind in _KINDS}
    last = _last_below(anatomy.bars)
    for i in sorted(range(len(anatomy.bars)), key=lambda i: (anatomy.bars[i].start, -anatomy.bars[i].end, i)):
        bar = anatomy.bars[i]
        if bar.off_axis:
            continue
        kind = _kind(bar.span.work)
        lane = _lane(lanes[kind], bar, i, last)
        thread = (_KINDS.index(kind) + 1) * _LANES + lane.number
        if not lane.named:
            lane.named = True
            yield from _thread(process, thread, kind if lane.number == 1 else f"{kind} {lane.number}")
        lane.open.append((i, bar.end))
        at = _microseconds(anatomy, bar.start)
        args = dict(_facts(bar))
        yield Event(bar.span.name, "X", process, thread, at, _microseconds(anatomy, bar.end) - at, args)
        if len(bar.pieces) > 1 or isinstance(bar.span.work, ModelCall):
            yield from (_tile(anatomy, piece, process, thread) for piece in bar.pieces)


def encoded(found: Iterable[Event]) -> Iterator[bytes]:
    """Each event as JSON, to be joined with commas between `HEAD` and `TAIL`."""
    return map(msgspec.json.Encoder().encode, found)


def _path(anatomy: Anatomy, process: int) -> Iterator[Event]:
    """The path's tiles, those of one span under a slice that names it."""
    names = {bar.span.id: bar.span.name for bar in anatomy.bars}
    runs: list[list[Segment]] = []
    for tile in anatomy.path:
        if runs and runs[-1][0].span == tile.span:
            runs[-1].append(tile)
        else:
            runs.append([tile])
    for run in runs:
        at, end = _microseconds(anatomy, run[0].start), _microseconds(anatomy, run[-1].end)
        yield Event(names.get(run[0].span, "task"), "X", process, PATH, at, end - at)
        yield from (_tile(anatomy, tile, process, PATH) for tile in run)


def _tile(anatomy: Anatomy, piece: Segment, process: int, thread: int) -> Event:
    at = _microseconds(anatomy, piece.start)
    return Event(piece.phase.value, "X", process, thread, at, _microseconds(anatomy, piece.end) - at)


def _microseconds(anatomy: Anatomy, seconds: float) -> int:
    return round(anatomy.started_at * 1_000_000) + round(seconds * 1_000_000)


def _thread(process: int, thread: int, name: str) -> Iterator[Event]:
    yield Event("thread_name", "M", process, thread, args={"name": name})
    yield Event("thread_sort_index", "M", process, thread, args={"sort_index": thread})


def _kind(work: Work) -> Kind:
    match work:
        case ModelCall():
            return "model calls"
        case ToolUse() | Retrieval():
            return "tools"
        case Step() | HumanWait():
            return "agent"
        case _:
            assert_never(work)


def _last_below(bars: tuple[Bar, ...]) -> list[int]:
    """The last row of what each row holds, itself if that is nothing: a slice may nest in what holds it alone."""
    last = list(range(len(bars)))
    open_rows: list[int] = []
    for i, bar in enumerate(bars):
        while open_rows and bars[open_rows[-1]].depth >= bar.depth:
            last[open_rows.pop()] = i - 1
        open_rows.append(i)
    for row in open_rows:
        last[row] = len(bars) - 1
    return last


def _lane(lanes: list[_Lane], bar: Bar, row: int, last: list[int]) -> _Lane:
    """The first track that has room for the bar, rows coming in order of start; a new one where none has."""
    for lane in lanes:
        while lane.open and lane.open[-1][1] <= bar.start:
            lane.open.pop()
        if not lane.open:
            return lane
        around, end = lane.open[-1]
        if around < row <= last[around] and bar.end <= end:
            return lane
    lanes.append(_Lane(len(lanes) + 1, []))
    return lanes[-1]


def _facts(bar: Bar) -> Iterator[tuple[str, str | int | float]]:
    yield "span", bar.span.id
    yield "on the critical path, s", bar.on_path
    if bar.on_path <= 0:
        slack = bar.slack
        yield "slack, s", "unknown" if slack is None else "nothing waits for it" if isinf(slack) else slack
    if bar.span.error is not None:
        yield "error", bar.span.error
    if isinstance(bar.span.work, ModelCall):
        usage = bar.span.work.usage
        counts = {"input tokens": usage.input_tokens, "output tokens": usage.output_tokens, "cached": usage.cache_read}
        yield from ((name, "unknown" if count is None else count) for name, count in counts.items())
