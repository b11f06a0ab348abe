"""Which rows of a waterfall belong to the critical path: those that lie on it, and those that hold one that does."""

from collections.abc import Sequence

from headway.app.report.fold import parents_of
from headway.core.task import SpanId
from headway.trace.waterfall import Bar


def along_the_path(bars: Sequence[Bar]) -> frozenset[SpanId]:
    """The spans on the path and all around them: a step whose every second is its calls' is not off the path."""
    parents = parents_of(bars)
    found: set[SpanId] = set()
    for i, bar in enumerate(bars):
        at: int | None = i if bar.on_path > 0 else None
        while at is not None and bars[at].span.id not in found:
            found.add(bars[at].span.id)
            at = parents[at]
    return frozenset(found)
