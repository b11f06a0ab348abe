"""The waterfall: one bar per span, with its phases, its share of the critical path and its slack."""

from itertools import compress
from math import inf

from msgspec import Struct, structs

from headway.core.span import HumanWait, Span
from headway.trace.graph import slacks
from headway.trace.path import Segment
from headway.trace.study import Study


class Bar(Struct, frozen=True, gc=False):
    """One row of the waterfall: a span and the pieces it splits into; seconds from the task's start."""

    span: Span
    depth: int
    start: float
    end: float
    pieces: tuple[Segment, ...]
    """The span's own phases (hop, queue, prefill, decode …), on the critical path or not; none for steps."""
    on_path: float
    """Seconds of this span that lie on the critical path."""
    slack: float | None
    """Seconds it could take longer without moving the task's end: 0 on the path, infinite where nothing waits for it,
    unknown for a tool that shares its gap with others, because how long it took is.

    By the replay: whatever a holder's other spans had finished when a span started is taken to be waited for. A step
    that is no part of the replay has the least slack of what it holds.
    """
    waited: float | None = None
    """For a wait for a person that ended: all of its seconds. Only those inside the task and beside work lie between
    ``start`` and ``end``."""
    before: float = 0.0
    """Those of them that lie before the task."""
    moved: float = 0.0
    """Seconds by which the span was moved because its host's clock disagreed: it was recorded so much earlier."""

    @property
    def took(self) -> float:
        """Seconds it took; a person's all, on the axis or not."""
        return self.end - self.start if self.waited is None else self.waited

    @property
    def off_axis(self) -> bool:
        """Whether it was over when the task began, so that it has no place among the seconds of the task."""
        return self.before > 0 and self.end <= 0


def bars_of(case: Study) -> tuple[Bar, ...]:
    """One bar per span, in the tree's order: parents before children, siblings by start."""
    tree, held = case.tree, case.held
    on_path = [0.0] * len(tree.spans)
    for stretch in case.walked:
        on_path[stretch.owner] += stretch.end - stretch.start
    slack = slacks(case.graph, held)
    least = list(slack)
    # Only below what is no part of the replay: what a node holds has never less slack than the node itself.
    below = compress(range(len(least)), map(inf.__eq__, map(slack.__getitem__, tree.parent)))
    for i in reversed(list(below)):
        above = tree.parent[i]
        if least[i] < least[above] and not held.adrift[i]:
            least[above] = least[i]
    spare: list[float | None] = [
        0.0 if share else inherited if own == inf else own
        for share, own, inherited in zip(on_path, slack, least, strict=True)
    ]
    for i in held.untimed:
        if not on_path[i]:
            spare[i] = None
    bars = list(map(Bar, tree.spans, tree.depth, tree.start, tree.end, case.own, on_path, spare))
    if HumanWait in tree.kinds:
        for i, kind in enumerate(tree.kinds):
            if kind is HumanWait:
                bars[i] = structs.replace(bars[i], waited=_recorded(bars[i].span), before=tree.before.get(i, 0.0))
    for i, seconds in tree.moved.items():
        bars[i] = structs.replace(bars[i], moved=seconds)
    return tuple(bars)


def _recorded(wait: Span) -> float | None:
    return None if wait.end is None else max(wait.end - wait.start, 0.0)
