from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.app.report.fold import Fold, fold, raster
from headway.core.span import ErrorType, ModelCall, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.trace.path import Phase, Segment
from headway.trace.waterfall import Bar

HOP, TOOL, DECODE = Phase.HOP, Phase.TOOL, Phase.DECODE


def bar(number: int, depth: int, on_path: float, work: Work | None = None, *, error: bool = False) -> Bar:
    span = Span(
        task=TaskId("t"),
        id=SpanId(str(number)),
        parent=None,
        name=str(number),
        start=0.0,
        end=None,
        work=work or Step(),
        error=ErrorType("boom") if error else None,
    )
    start = float(number)
    return Bar(span=span, depth=depth, start=start, end=start + 1.0, pieces=(), on_path=on_path, slack=0.0)


def segment(phase: Phase, start: float, end: float) -> Segment:
    return Segment(SpanId("s"), phase, start, end)


def test_a_short_task_is_not_folded() -> None:
    bars = [bar(n, 0, 1.0) for n in range(3)]
    assert fold(bars, 3) == tuple(bars)
    assert fold([], 3) == ()


def test_what_is_folded_is_counted() -> None:
    bars = [
        bar(0, 0, 9.0),
        bar(1, 1, 0.5, ModelCall(model="m")),
        bar(2, 1, 0.25, ToolUse(name="t"), error=True),
        bar(3, 1, 5.0),
        bar(4, 1, 0.0, ToolUse(name="t")),
    ]
    assert fold(bars, 2) == (
        bars[0],
        Fold(spans=2, calls=1, tools=1, failures=1, depth=1, start=1.0, end=3.0, on_path=0.75),
        bars[3],
        Fold(spans=1, calls=0, tools=1, failures=0, depth=1, start=4.0, end=5.0, on_path=0.0),
    )


def test_what_is_kept_keeps_its_ancestors_while_there_is_room() -> None:
    bars = [bar(0, 0, 0.0), bar(1, 1, 1.0), bar(2, 1, 0.0), bar(3, 2, 5.0), bar(4, 2, 0.0)]
    kept = [row.span.name for row in fold(bars, 3) if isinstance(row, Bar)]
    assert kept == ["0", "2", "3"]


@st.composite
def trees(draw: st.DrawFn) -> list[Bar]:
    depth, bars = 0, list[Bar]()
    for number in range(draw(st.integers(0, 60))):
        depth = draw(st.integers(0, min(depth + 1, 8))) if number else 0
        bars.append(bar(number, depth, draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))))
    return bars


def spans_of(rows: tuple[Bar | Fold, ...]) -> Iterator[int]:
    for row in rows:
        yield row.spans if isinstance(row, Fold) else 1


@settings(deadline=None, max_examples=50)
@given(bars=trees(), limit=st.integers(1, 40))
def test_folding_is_bounded_and_loses_no_span(bars: list[Bar], limit: int) -> None:
    rows = fold(bars, limit)
    assert len(rows) <= 2 * limit + 1
    assert sum(isinstance(row, Bar) for row in rows) == min(limit, len(bars))
    assert sum(spans_of(rows)) == len(bars)
    shown = [int(row.span.name) for row in rows if isinstance(row, Bar)]
    assert shown == sorted(shown)


def test_each_cell_shows_the_phase_that_fills_most_of_it() -> None:
    pieces = (segment(HOP, 0.0, 0.4), segment(TOOL, 0.4, 2.6), segment(DECODE, 2.6, 4.0))
    assert raster(pieces, 4, 4.0) == {0: TOOL, 1: TOOL, 2: TOOL, 3: DECODE}
    assert raster(pieces, 10, 10.0) == {0: TOOL, 1: TOOL, 2: TOOL, 3: DECODE}


def test_a_piece_ends_where_the_next_cell_begins() -> None:
    assert raster((segment(TOOL, 1.0, 2.0),), 4, 4.0) == {1: TOOL}


def test_a_piece_too_short_for_a_cell_is_still_seen() -> None:
    assert raster((segment(TOOL, 99.999, 100.0),), 10, 100.0) == {9: TOOL}
    assert raster((segment(TOOL, 50.0, 50.0),), 10, 100.0) == {5: TOOL}
    assert raster((segment(TOOL, 100.0, 100.0),), 10, 100.0) == {9: TOOL}


def test_a_task_of_no_length_has_no_cells() -> None:
    assert raster((segment(TOOL, 0.0, 0.0),), 10, 0.0) == {}


@settings(deadline=None)
@given(
    marks=st.lists(st.floats(0.0, 100.0), min_size=2, max_size=20).map(sorted),
    columns=st.integers(1, 80),
)
def test_touching_pieces_leave_no_hole(marks: list[float], columns: int) -> None:
    pieces = [segment(TOOL, a, b) for a, b in pairwise(marks)]
    cells = sorted(raster(pieces, columns, 100.0))
    assert cells == list(range(cells[0], cells[-1] + 1))
    assert 0 <= cells[0] <= cells[-1] < columns
