"""The task as a graph that can be replayed: what waited for what, and for how long after it."""

from collections.abc import Sequence
from math import inf, nextafter

from msgspec import Struct

from headway.trace.contract import Contraction
from headway.trace.tree import EPSILON


class Graph(Struct, frozen=True, kw_only=True):
    """Spans by the tree's index. A span starts ``gap`` after the last of those it waited for.

    Whatever else its holder had finished (within EPSILON) when a span started is taken to be waited for; and by a tool
    that began while the answer that asks for it still came, that answer's end: its gap is negative. A holder ends
    ``tail`` after the last of all that it holds; a span that holds nothing, ``tail`` after its own start.
    """

    gap: list[float]
    tail: list[float]
    before: list[int]
    """The span whose end a start waited for last; the holder where it waited for its start only."""
    last: list[int]
    """The span whose end an end waited for last; itself where it holds nothing."""
    inside: list[tuple[int, list[int]]]
    """Each holder, after all holders in it, and what happens in it: ``i`` starts; from ``~i`` on, starts wait for it.

    Plain numbers, because the replay of a large task reads a hundred thousand of them.
    """


def graph_of(held: Contraction) -> Graph:
    """Derive the graph from recorded times; O(n log n), and no deeper a stack for deeper trees."""
    lo, hi, holder = held.lo, held.hi, held.holder
    size = len(holder)
    tail = [until - since for since, until in zip(lo, hi, strict=True)]
    graph = Graph(gap=[0.0] * size, tail=tail, before=[0] * size, last=list(range(size)), inside=[])
    children: dict[int, list[int]] = {}
    for i in held.nodes[1:]:
        above = holder[i]
        if above in children:
            children[above].append(i)
        else:
            children[above] = [i]
    # A span is waited for from EPSILON before its end on, but not before its start.
    spans = zip(lo, hi, strict=True)
    ready = [end - EPSILON if end - EPSILON > start else nextafter(start, inf) for start, end in spans]
    begin = lo  # when a span has all that it waits for, but for its gap
    if held.early:
        begin = [*lo]
        for i, call in held.early.items():
            begin[i] = hi[call]
    for above, inner in reversed(children.items()):
        graph.inside.append((above, _inside(above, inner, held, (begin, ready), graph)))
    return graph


def _inside(
    holder: int, inner: list[int], held: Contraction, when: tuple[Sequence[float], Sequence[float]], graph: Graph
) -> list[int]:
    """What happens in one holder up to its end; sets the gaps and the tail on the way."""
    lo, hi, gap, before = held.lo, held.hi, graph.gap, graph.before
    events: list[int] = []
    begin, ready = when
    starts, started = sorted(inner, key=begin.__getitem__), 0
    latest, waited = lo[holder], holder
    for done in sorted(inner, key=ready.__getitem__):
        until = ready[done]
        while started < len(starts) and begin[starts[started]] < until:
            i = starts[started]
            gap[i], before[i] = lo[i] - latest, waited
            events.append(i)
            started += 1
        events.append(~done)
        if hi[done] > latest or (hi[done] == latest and lo[done] >= lo[waited]):
            latest, waited = hi[done], done
    graph.tail[holder], graph.last[holder] = hi[holder] - latest, waited
    return events


def replay(graph: Graph, gap: Sequence[float], tail: Sequence[float]) -> float:
    """E2E if the gaps and tails were these and everything still waited for what it waited for. Seconds."""
    length, end = list(tail), [0.0] * len(tail)  # ends by the start of the holder
    for holder, events in graph.inside:
        now = 0.0
        for i in events:
            if i >= 0:
                end[i] = now + gap[i] + length[i]
            elif end[~i] > now:
                now = end[~i]
        length[holder] += now
    return length[0]


def slacks(graph: Graph, held: Contraction) -> list[float]:
    """How much longer each node could take without moving the task's end; infinite for spans that are no nodes."""
    lo, hi, gap, tail = held.lo, held.hi, graph.gap, graph.tail
    latest = [inf] * len(tail)
    latest[0] = hi[0]
    for holder, events in reversed(graph.inside):
        bound = latest[holder] - tail[holder]
        for i in reversed(events):
            if i < 0:
                latest[~i] = bound
            else:
                start = latest[i] - (hi[i] - lo[i]) - gap[i]
                if start < bound:  # noqa: PLR1730 - min() would double the time
                    bound = start
    return [until - end if until > end else 0.0 for until, end in zip(latest, hi, strict=True)]
