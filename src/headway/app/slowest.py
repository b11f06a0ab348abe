"""The slowest tasks of a set, kept whole while all others are put away."""

from heapq import heappush, heapreplace

from headway.trace.filed import Row, taken_out
from headway.trace.set_study import SLOWEST
from headway.trace.sources.intake import Imported


class Slowest:
    """Keeps the spans of the `SLOWEST` tasks so far, so that they can be shown without reading everything again."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Imported]] = []
        self._offered = 0

    def offer(self, row: Row) -> None:
        """One more task; of equals, the first stay."""
        e2e = row.facts.e2e
        if e2e is None:
            return
        self._offered += 1
        if len(self._heap) < SLOWEST:
            heappush(self._heap, (e2e, -self._offered, taken_out(row)))
        elif e2e > self._heap[0][0]:
            heapreplace(self._heap, (e2e, -self._offered, taken_out(row)))

    def kept(self) -> tuple[Imported, ...]:
        """The slowest first."""
        return tuple(one for _, _, one in sorted(self._heap, key=lambda entry: entry[:2], reverse=True))
