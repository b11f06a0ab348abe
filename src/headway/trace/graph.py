"""The task as a graph that can be replayed: what waited for what, and for how long after it."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from math import inf, nextafter

from msgspec import Struct

from headway.trace.contract import EPSILON, Contraction


class Event(IntEnum):
    """A step of the replay."""

    START = 0
    END = 1
    DONE = 2
    """From here on, what starts beside the span waits for its end."""


class Graph(Struct, frozen=True, kw_only=True):
    """Spans by the tree's index. A span starts ``gap`` after the last of those it waited for.

    Whatever else its holder had finished (within EPSILON) when a span started is taken to be waited for. A holder ends
    ``tail`` after the last of all that it holds; a span that holds nothing, ``tail`` after its own start.
    """

    gap: list[float]
    tail: list[float]
    before: list[int]
    """The span whose end a start waited for last; the holder where it waited for its start only."""
    last: list[int]
    """The span whose end an end waited for last; itself where it holds nothing."""
    events: list[tuple[Event, int]]
    """In an order that keeps every dependency."""


def graph_of(held: Contraction) -> Graph:
    """Derive the graph from recorded times; O(n log n), and no deeper a stack for deeper trees."""
    size = len(held.holder)
    graph = Graph(gap=[0.0] * size, tail=[0.0] * size, before=[0] * size, last=list(range(size)), events=[])
    children: list[list[int]] = [[] for _ in range(size)]
    for i in held.nodes[1:]:
        children[held.holder[i]].append(i)
    emit = graph.events.append
    emit((Event.START, 0))
    stack = [_inside(0, children[0], held, graph)]
    while stack:
        for event in stack[-1]:
            emit(event)
            kind, i = event
            if kind is Event.START:
                if children[i]:
                    stack.append(_inside(i, children[i], held, graph))
                    break
                graph.tail[i] = held.hi[i] - held.lo[i]
                emit((Event.END, i))
        else:
            stack.pop()
    return graph


def _inside(holder: int, children: list[int], held: Contraction, graph: Graph) -> Iterator[tuple[Event, int]]:
    """What happens in one holder up to its end; sets the gaps and the tail on the way."""
    lo, hi = held.lo, held.hi
    latest, waited = lo[holder], holder
    running: list[tuple[float, int]] = []  # by the moment from which on others wait for it
    children.sort(key=lo.__getitem__)
    for i in [*children, holder]:
        now = inf if i == holder else lo[i]
        while running and running[0][0] <= now:
            _, done = heappop(running)
            yield Event.DONE, done
            if hi[done] > latest or (hi[done] == latest and lo[done] >= lo[waited]):
                latest, waited = hi[done], done
        if i != holder:
            graph.gap[i], graph.before[i] = now - latest, waited
            heappush(running, (max(hi[i] - EPSILON, nextafter(now, inf)), i))
            yield Event.START, i
    graph.tail[holder], graph.last[holder] = hi[holder] - latest, waited
    yield Event.END, holder


def replay(graph: Graph, gap: Sequence[float], tail: Sequence[float]) -> float:
    """E2E if the gaps and tails were these and everything still waited for what it waited for. Seconds."""
    end = [0.0] * len(tail)
    outer: list[float] = []
    now = 0.0
    for kind, i in graph.events:
        if kind is Event.DONE:
            now = max(now, end[i])
        elif kind is Event.START:
            outer.append(now)
            now += gap[i]
        else:
            end[i] = now + tail[i]
            now = outer.pop()
    return end[0]


def slacks(graph: Graph, held: Contraction) -> list[float]:
    """How much longer each node could take without moving the task's end; infinite for spans that are no nodes."""
    latest = [inf] * len(graph.tail)
    latest[0] = held.hi[0]
    outer: list[float] = []
    bound = inf
    for kind, i in reversed(graph.events):
        if kind is Event.DONE:
            latest[i] = bound
        elif kind is Event.END:
            outer.append(bound)
            bound = latest[i] - graph.tail[i]
        else:
            bound = min(outer.pop(), bound - graph.gap[i])
    return [max(0.0, until - end) for until, end in zip(latest, held.hi, strict=True)]
