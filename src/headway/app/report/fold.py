"""Long tasks made readable: the spans that matter stay, the others are folded between them and counted."""

from collections.abc import Iterable, Sequence
from math import ceil, floor

from msgspec import Struct

from headway.core.span import ModelCall, ToolUse
from headway.trace.path import Phase, Segment
from headway.trace.waterfall import Bar

_EDGE = 1e-9
"""Of a cell: keeps a piece that ends where a cell begins out of that cell, whatever the division left over."""


class Fold(Struct, frozen=True, kw_only=True):
    """Neighbouring rows of the waterfall that are not shown; seconds from the task's start."""

    spans: int
    calls: int
    tools: int
    failures: int
    depth: int
    start: float
    end: float
    on_path: float
    """Their seconds on the critical path, together."""
    pieces: tuple[Segment, ...] = ()
    """All of theirs, in the rows' order; they may overlap."""


def fold(bars: Sequence[Bar], limit: int) -> tuple[Bar | Fold, ...]:
    """At most ``limit`` bars in their order, and a `Fold` for each run of others: never more than 2 x limit + 1 rows.

    Kept are the bars with most of the critical path, then the longest, each with its ancestors while there is room; of
    equals, some from everywhere.
    """
    if len(bars) <= limit:
        return tuple(bars)
    parents = parents_of(bars)
    kept: set[int] = set()
    for i in sorted(range(len(bars)), key=lambda i: (-bars[i].on_path, bars[i].start - bars[i].end, scattered(i))):
        branch: list[int] = []
        at: int | None = i
        while at is not None and at not in kept and len(branch) < limit:
            branch.append(at)
            at = parents[at]
        room = limit - len(kept)
        kept.update(branch if len(branch) <= room else branch[:1])
        if len(kept) >= limit:
            break
    rows: list[Bar | Fold] = []
    hidden: list[Bar] = []
    for i, bar in enumerate(bars):
        if i in kept:
            if hidden:
                rows.append(_folded(hidden))
                hidden = []
            rows.append(bar)
        else:
            hidden.append(bar)
    return (*rows, _folded(hidden)) if hidden else tuple(rows)


def scattered(i: int) -> int:
    """A rank for ``i`` that makes the first few of any run of numbers lie all over it: its bits, reversed."""
    return int(f"{i:032b}"[::-1], 2)


def raster(pieces: Iterable[Segment], columns: int, e2e: float) -> dict[int, Phase]:
    """Which phase fills most of each of ``columns`` equal cells of the task; cells that nothing touches are left out.

    A piece shorter than a cell, or without length, still shows where it is alone.
    """
    width = e2e / columns
    if width <= 0:
        return {}
    shares: dict[int, dict[Phase, float]] = {}
    cells: dict[int, Phase] = {}
    for piece in pieces:
        first = min(max(floor(piece.start / width + _EDGE), 0), columns - 1)
        last = min(max(ceil(piece.end / width - _EDGE) - 1, first), columns - 1)
        for cell in {first, last}:
            inside = min(piece.end, (cell + 1) * width) - max(piece.start, cell * width)
            phases = shares.setdefault(cell, {})
            phases[piece.phase] = phases.get(piece.phase, 0.0) + max(inside, 0.0)
        for cell in range(first + 1, last):
            cells[cell] = piece.phase
    for cell, phases in shares.items():
        cells[cell] = max(phases, key=lambda phase: phases[phase])
    return cells


def parents_of(bars: Sequence[Bar]) -> list[int | None]:
    """The row of each bar's parent: the nearest one before it that is less deep."""
    above: list[int] = []
    parents: list[int | None] = []
    for i, bar in enumerate(bars):
        while above and bars[above[-1]].depth >= bar.depth:
            above.pop()
        parents.append(above[-1] if above else None)
        above.append(i)
    return parents


def _folded(hidden: Sequence[Bar]) -> Fold:
    return Fold(
        spans=len(hidden),
        calls=sum(isinstance(bar.span.work, ModelCall) for bar in hidden),
        tools=sum(isinstance(bar.span.work, ToolUse) for bar in hidden),
        failures=sum(bar.span.error is not None for bar in hidden),
        depth=min(bar.depth for bar in hidden),
        start=min(bar.start for bar in hidden),
        end=max(bar.end for bar in hidden),
        on_path=sum(bar.on_path for bar in hidden),
        pieces=tuple(piece for bar in hidden for piece in bar.pieces),
    )
