"""The waterfall: one bar per span, with its phases, its share of the critical path and its slack."""

from math import inf

from msgspec import Struct

from headway.core.span import Span
from headway.trace.graph import slacks
from headway.trace.path import Segment
from headway.trace.study import Study


class Bar(Struct, frozen=True, kw_only=True, gc=False):
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


def bars_of(case: Study) -> tuple[Bar, ...]:
    """One bar per span, in the tree's order: parents before children, siblings by start."""
    tree, held = case.tree, case.held
    on_path = [0.0] * len(tree.spans)
    for stretch in case.walked:
        on_path[stretch.owner] += stretch.seconds
    slack = slacks(case.graph, held)
    least = list(slack)
    for i in range(len(least) - 1, 0, -1):
        above = tree.parent[i]
        if least[i] < least[above] and not held.adrift[i]:
            least[above] = least[i]
    rows = zip(tree.spans, tree.depth, tree.start, tree.end, case.own, on_path, slack, least, strict=True)
    return tuple(
        [
            Bar(
                span=span,
                depth=depth,
                start=start,
                end=end,
                pieces=pieces,
                on_path=share,
                slack=0.0 if share else inherited if spare == inf else spare,
            )
            for span, depth, start, end, pieces, share, spare, inherited in rows
        ]
    )
