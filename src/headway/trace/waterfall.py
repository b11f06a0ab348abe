"""The waterfall: one bar per span, with its phases, its share of the critical path and its slack."""

from collections.abc import Iterable, Sequence
from math import inf

from msgspec import Struct

from headway.core.span import Span
from headway.trace.contract import Contraction
from headway.trace.graph import Graph, slacks
from headway.trace.path import Segment, Tile
from headway.trace.phases import Piece
from headway.trace.tree import Tree


class Bar(Struct, frozen=True, kw_only=True):
    """One row of the waterfall: a span and the pieces it splits into; seconds from the task's start."""

    span: Span
    depth: int
    start: float
    end: float
    pieces: tuple[Segment, ...]
    """The span's own phases (hop, queue, prefill, decode …), on the critical path or not; none for steps."""
    on_path: float
    """Seconds of this span that lie on the critical path."""
    slack: float
    """Seconds it could take longer without moving the task's end: 0 on the path, infinite where nothing waits for it.

    By the replay: whatever a holder's other spans had finished when a span started is taken to be waited for. A step
    that is no part of the replay has the least slack of what it holds.
    """


def bars_of(
    tree: Tree, held: Contraction, graph: Graph, pieces: Sequence[Sequence[Piece]], walked: Iterable[Tile]
) -> tuple[Bar, ...]:
    """One bar per span, in the tree's order: parents before children, siblings by start."""
    on_path = [0.0] * len(tree.spans)
    for tile in walked:
        on_path[tile.owner] += tile.end - tile.start
    slack = slacks(graph, held)
    least = list(slack)
    for i in range(len(least) - 1, 0, -1):
        if not held.adrift[i]:
            above = tree.parent[i]
            least[above] = min(least[above], least[i])
    bars: list[Bar] = []
    rows = zip(tree.spans, tree.depth, tree.start, tree.end, pieces, on_path, slack, least, strict=True)
    for span, depth, start, end, own, share, spare, inherited in rows:
        name = span.id
        spare = inherited if spare == inf else spare  # noqa: PLW2901 - the row's own value
        bars.append(
            Bar(
                span=span, depth=depth, start=start, end=end,
                pieces=tuple([Segment(name, phase, a, b) for phase, a, b in own]),
                on_path=share, slack=0.0 if share else spare,
            )
        )  # fmt: skip
    return tuple(bars)
