"""The time that belongs to people: when a person was waited for and nothing else was done."""

from collections.abc import Iterable, Sequence

from headway.core.span import HumanWait, ModelCall, Retrieval, Span, ToolUse

Interval = tuple[float, float]


def idle(
    spans: Sequence[Span], parent: Sequence[int], starts: Sequence[float], ends: Sequence[float]
) -> list[Interval]:
    """Disjoint intervals inside the root (index 0), in order, in which only a person kept the task waiting.

    Work that a wait lies inside (a tool that asks for approval) does not count as work during that wait.
    """
    asks: set[int] = set()
    waits: list[Interval] = []
    for i, span in enumerate(spans):
        if isinstance(span.work, HumanWait):
            waits.append((max(starts[i], starts[0]), min(ends[i], ends[0])))
            above = parent[i]
            while above not in asks:
                asks.add(above)
                above = parent[above]
    busy = [
        (starts[i], ends[i])
        for i, span in enumerate(spans)
        if i not in asks and isinstance(span.work, ModelCall | ToolUse | Retrieval)
    ]
    return _without(_union(waits), _union(busy))


def _union(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _without(intervals: list[Interval], holes: list[Interval]) -> list[Interval]:
    rest: list[Interval] = []
    hole = 0
    for start, end in intervals:
        at = start
        while hole < len(holes) and holes[hole][1] <= at:
            hole += 1
        ahead = hole
        while ahead < len(holes) and holes[ahead][0] < end:
            if holes[ahead][0] > at:
                rest.append((at, holes[ahead][0]))
            at = max(at, holes[ahead][1])
            ahead += 1
        if at < end:
            rest.append((at, end))
    return rest
