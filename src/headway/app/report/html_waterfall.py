"""The waterfall as HTML: what its rows, bars and axis are, ready to print."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from math import isinf

from msgspec import Struct

from headway.app.report import figures
from headway.app.report.fold import Fold, fold, raster
from headway.app.report.holding import along_the_path
from headway.app.report.legend import SIGNS, Sign
from headway.app.report.measured import of_span
from headway.core.span import ModelCall
from headway.core.task import SpanId
from headway.trace.anatomy import Anatomy
from headway.trace.path import Phase, Segment
from headway.trace.waterfall import Bar

_PIECES = 48
"""Pieces of one row that are drawn exactly; a row of more is drawn on a grid of `_GRID` cells."""
_GRID = 240
_FINE = 40
"""Parts that the time axis is marked in when it is zoomed; a quarter of them stand between two marks when it is not."""
_LONGEST = 160
"""Characters of a name."""


class Piece(Struct, frozen=True, kw_only=True):
    """A rectangle of the waterfall, in per cent of E2E."""

    phase: Phase
    x: float
    width: float
    title: str


class Row(Struct, frozen=True, kw_only=True):
    """One row of the waterfall, ready to print."""

    name: str
    depth: int
    on_path: bool
    folded: bool
    error: str | None
    start: str
    took: str
    x: float
    width: float
    pieces: tuple[Piece, ...]
    measured: str
    spoken: str
    """The whole row in a sentence, for those who cannot see it."""
    facts: tuple[tuple[str, str], ...]


class Fall(Struct, frozen=True, kw_only=True):
    """One waterfall."""

    key: str
    """Of its own in the page."""
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    """Per cent of E2E, and what stands there."""
    fine: tuple[tuple[float, str], ...]
    """The marks between those, for when it is zoomed."""
    first_output: tuple[float, str] | None
    """The same for the first output that the user could see, where it is known."""
    signs: dict[Phase, Sign]
    """Of the phases that occur."""


def fall_of(anatomy: Anatomy, limit: int, key: str) -> Fall:
    """The waterfall of one task, its rows beyond ``limit`` folded away."""
    decimals, along = figures.decimals_for(anatomy.e2e), along_the_path(anatomy.bars)
    seen = {piece.phase for bar in anatomy.bars for piece in bar.pieces} | set(anatomy.phases)
    return Fall(
        key=key,
        rows=tuple(_row(row, anatomy, decimals, along) for row in fold(anatomy.bars, limit)),
        ticks=_ticks(anatomy.e2e, decimals, range(0, _FINE + 1, _FINE // 4)),
        fine=_ticks(anatomy.e2e, decimals, [i for i in range(_FINE) if i % (_FINE // 4)]),
        first_output=_first_output(anatomy, decimals),
        signs={phase: SIGNS[phase] for phase in SIGNS if phase in seen},
    )


def _row(row: Bar | Fold, anatomy: Anatomy, decimals: int, along: AbstractSet[SpanId]) -> Row:
    start, took = figures.seconds(row.start, decimals), figures.seconds(row.end - row.start, decimals)
    share = 100 / anatomy.e2e if anatomy.e2e > 0 else 0.0
    x, width = _clip(row.start * share, row.end * share)
    error, on_path, off_axis = None, row.on_path > 0, False
    if isinstance(row, Bar):
        on_path = row.span.id in along
        name = figures.row_name(row)[:_LONGEST]
        took = figures.seconds(row.took, decimals)
        off_axis = row.off_axis
        error = None if row.span.error is None else figures.printable(row.span.error)[:_LONGEST]
        facts = _facts(row, decimals, on_path=on_path)
    else:
        name = f"{figures.plural(row.spans, 'span')} folded"
        facts = (
            ("holds", f"{figures.plural(row.calls, 'call')}, {figures.plural(row.tools, 'tool')}"),
            ("failed", figures.count(row.failures)),
            ("on the critical path", figures.seconds(row.on_path, decimals)),
        )
    path = "on the critical path" if on_path else "off the critical path"
    failed = "" if error is None else f", failed: {error}"
    return Row(
        name=name,
        depth=min(row.depth, 10),
        on_path=on_path,
        folded=isinstance(row, Fold),
        error=error,
        start="before" if off_axis else start,
        took=took,
        x=x,
        width=width,
        pieces=tuple(_pieces(row, anatomy.e2e, decimals)),
        measured=of_span(row.span)
        if isinstance(row, Bar)
        else "From the first start to the last end of what is folded.",
        spoken=f"{name}: starts {'before it' if off_axis else f'at {start}'}, takes {took}, {path}{failed}",
        facts=facts,
    )


def _facts(bar: Bar, decimals: int, *, on_path: bool) -> tuple[tuple[str, str], ...]:
    facts = [("span", f"{figures.printable(bar.span.name)[:_LONGEST]} ({figures.printable(bar.span.id)[:_LONGEST]})")]
    facts.append(("on the critical path", figures.seconds(bar.on_path, decimals)))
    if not on_path:
        free = bar.slack is not None and isinf(bar.slack)
        facts.append(("slack", "nothing waits for it" if free else figures.seconds(bar.slack, decimals)))
    split: dict[Phase, float] = {}
    for piece in bar.pieces:
        split[piece.phase] = split.get(piece.phase, 0.0) + piece.end - piece.start
    facts += [(SIGNS[phase].label, figures.seconds(length, decimals)) for phase, length in split.items()]
    if isinstance(bar.span.work, ModelCall):
        call, usage = bar.span.work, bar.span.work.usage
        facts.append(("tokens", f"{figures.count(usage.input_tokens)} in, {figures.count(usage.output_tokens)} out"))
        facts.append(("from the cache", figures.count(usage.cache_read)))
        if call.given_again is not None:
            facts.append(("replica", "none: it was answered from the cache of answers"))
        else:
            facts.append(("replica", figures.printable(call.replica)[:_LONGEST] if call.replica else figures.UNKNOWN))
        if call.route is not None:
            facts.append(("routed because", figures.printable(call.route.reason)[:_LONGEST]))
    facts.append(("measured", of_span(bar.span)))
    return tuple(facts)


def _pieces(row: Bar | Fold, e2e: float, decimals: int) -> Iterable[Piece]:
    exact = len(row.pieces) <= _PIECES
    for piece in row.pieces if exact else _on_grid(row.pieces, e2e):
        x, width = _clip(piece.start * 100 / e2e, piece.end * 100 / e2e) if e2e > 0 else (0.0, 0.0)
        sign = SIGNS[piece.phase]
        length = figures.seconds(piece.end - piece.start, decimals) if exact else "mostly"
        title = f"{sign.label} {length}: {sign.measured}"
        yield Piece(phase=piece.phase, x=x, width=max(width, 0.12), title=title)


def _on_grid(pieces: Sequence[Segment], e2e: float) -> list[Segment]:
    cells, width = raster(pieces, _GRID, e2e), e2e / _GRID
    segments = [Segment(SpanId(""), cells[c], c * width, (c + 1) * width) for c in sorted(cells)]
    return _joined(segments) if segments else []


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    joined = [segments[0]]
    for before, after in pairwise(segments):
        if before.phase is after.phase and before.end >= after.start - 1e-9:
            joined[-1] = Segment(after.span, after.phase, joined[-1].start, after.end)
        else:
            joined.append(after)
    return joined


def _clip(start: float, end: float) -> tuple[float, float]:
    x = min(max(start, 0.0), 100.0)
    return x, max(min(end, 100.0) - x, 0.0)


def _ticks(e2e: float, decimals: int, parts: Iterable[int]) -> tuple[tuple[float, str], ...]:
    return tuple((part * 100 / _FINE, figures.seconds(e2e * part / _FINE, decimals)) for part in parts)


def _first_output(anatomy: Anatomy, decimals: int) -> tuple[float, str] | None:
    if anatomy.task_ttft is None or anatomy.e2e <= 0:
        return None
    return min(anatomy.task_ttft * 100 / anatomy.e2e, 100.0), figures.seconds(anatomy.task_ttft, decimals)
