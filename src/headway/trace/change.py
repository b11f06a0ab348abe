"""What-ifs: a task's gaps and tails, changed, to be replayed."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from headway.core.span import HumanWait, Step
from headway.trace.graph import replay
from headway.trace.path import Stretch
from headway.trace.phases import HOP, RETRY, Phase, clip
from headway.trace.study import Study


class Share(Struct, frozen=True, gc=False):
    """Seconds of one phase in one gap or tail of the graph."""

    owner: int
    """The span whose time it is."""
    node: int
    """The span whose gap or tail it is."""
    is_gap: bool
    seconds: float


class Change:
    """A copy of a task's gaps and tails; a saving is never negative, even where a change makes something longer."""

    def __init__(self, case: Study) -> None:
        self._case = case
        self.gap = list(case.graph.gap)
        self.tail = list(case.graph.tail)

    def saving(self) -> float:
        """E2E - E2E of the replay with the change; seconds, at least 0 and at most E2E."""
        e2e = self._case.e2e
        return min(max(e2e - self.replayed(), 0.0), e2e)

    def replayed(self) -> float:
        """E2E of the replay with the change; seconds."""
        return max(replay(self._case.graph, self.gap, self.tail), 0.0)

    def scale(self, shares: Iterable[Share], factor: Callable[[int], float]) -> None:
        """Make shares last ``factor(owner)`` times as long; a factor above 1 makes them longer."""
        for share in shares:
            target = self.gap if share.is_gap else self.tail
            target[share.node] = max(0.0, target[share.node] - share.seconds * (1.0 - factor(share.owner)))

    def shorten(self, gaps: Iterable[int], tails: Iterable[int], left: float) -> None:
        """Leave this share of some gaps and tails; what overlapped the span it waited for keeps overlapping it."""
        for node in gaps:
            if self.gap[node] > 0:
                self.gap[node] *= left
        for node in tails:
            self.tail[node] *= left

    def drop(self, node: int) -> None:
        """Make a span's own tail and the wait before it last no time."""
        self.tail[node] = 0.0
        self.drop_gap(node)

    def drop_gap(self, node: int) -> None:
        """Let a span start when the last that it waited for ends; one that overlapped that keeps overlapping."""
        self.gap[node] = min(self.gap[node], 0.0)

    def side_by_side(self, group: Sequence[int], longest: int, children: dict[int, list[int]]) -> None:
        """Let spans, in order of start, start at once; what all but the longest hold and take is no time any more."""
        for i in group[1:]:
            self.drop_gap(i)
        for i in group:
            if i != longest:
                for node in below(children, i)[1:]:
                    self.drop(node)
                self.tail[i] = 0.0

    def drop_stretch(self, stretch: Stretch) -> None:
        """Take a stretch of the path out."""
        if stretch.is_gap:
            self.drop_gap(stretch.node)
        else:
            self.tail[stretch.node] = 0.0


def shares_of(case: Study) -> dict[Phase, list[Share]]:
    """What each phase has in every gap and tail, on the path or not."""
    found: dict[Phase, list[Share]] = {phase: [] for phase in Phase}
    held, graph = case.held, case.graph

    def add(owner: int, node: int, until: float, length: float, *, is_gap: bool) -> None:
        if length <= 0:
            return
        if is_gap and node in case.paused:
            found[RETRY].append(Share(owner, node, is_gap, length))
            return
        if not case.own[owner]:
            found[HOP].append(Share(owner, node, is_gap, length))
            return
        for segment in clip(case.own[owner], until - length, until):
            found[segment.phase].append(Share(owner, node, is_gap, segment.end - segment.start))

    for i in held.nodes:
        add(i, i, held.hi[i], graph.tail[i], is_gap=False)
        add(held.holder[i], i, held.lo[i], graph.gap[i], is_gap=True)
    return found


def inner(case: Study) -> dict[int, list[int]]:
    """What each holder holds."""
    children: dict[int, list[int]] = {}
    for i in case.held.nodes[1:]:
        children.setdefault(case.held.holder[i], []).append(i)
    return children


def below(children: dict[int, list[int]], top: int) -> list[int]:
    """A span and all that it holds, at any depth."""
    found = [top]
    for i in found:
        found += children.get(i, ())
    return found


def unended(case: Study) -> list[float]:
    """When work began whose end is not known, or is recorded before its start; ascending."""
    tree = case.tree
    return sorted(
        tree.start[i]
        for i, span in enumerate(tree.spans)
        if tree.kinds[i] not in {Step, HumanWait} and (span.end is None or span.end < span.start)
    )
