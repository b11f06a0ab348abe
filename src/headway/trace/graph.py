"""The task as a graph that can be replayed: what waited for what, and for how long after it."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import inf, nextafter

from msgspec import Struct

from headway.trace.contract import EPSILON, Contraction

# Steps of the replay; plain numbers, because the replay of a large task compares a hundred thousand of them.
OPEN = 0
"""A holder starts."""
CLOSE = 1
"""It ends."""
LEAF = 2
"""A span that holds nothing starts and ends."""
DONE = 3
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
    steps: bytearray
    """OPEN, CLOSE, LEAF or DONE, in an order that keeps every dependency."""
    whose: list[int]
    """The span of each step."""


def graph_of(held: Contraction) -> Graph:
    """Derive the graph from recorded times; O(n log n), and no deeper a stack for deeper trees."""
    size = len(held.holder)
    tail = [until - since for since, until in zip(held.lo, held.hi, strict=True)]
    graph = Graph(gap=[0.0] * size, tail=tail, before=[0] * size, last=list(range(size)), steps=bytearray(), whose=[])
    children: dict[int, list[int]] = {}
    for i in held.nodes[1:]:
        above = held.holder[i]
        if above in children:
            children[above].append(i)
        else:
            children[above] = [i]
    step, at = graph.steps.append, graph.whose.append
    step(OPEN if children else LEAF)
    at(0)
    stack = [_inside(0, children, held, graph)] if children else []
    while stack:
        for kind, i in stack[-1]:
            step(kind)
            at(i)
            if kind == OPEN:
                stack.append(_inside(i, children, held, graph))
                break
        else:
            stack.pop()
    return graph


def _inside(holder: int, children: dict[int, list[int]], held: Contraction, graph: Graph) -> Iterator[tuple[int, int]]:
    """What happens in one holder up to its end; sets the gaps and the tail on the way."""
    lo, hi, gap, before = held.lo, held.hi, graph.gap, graph.before
    latest, waited = lo[holder], holder
    running: list[tuple[float, int]] = []  # by the moment from which on others wait for it
    for i in sorted(children[holder], key=lo.__getitem__):
        now = lo[i]
        while running and running[0][0] <= now:
            done = heappop(running)[1]
            yield DONE, done
            if hi[done] > latest or (hi[done] == latest and lo[done] >= lo[waited]):
                latest, waited = hi[done], done
        gap[i], before[i] = now - latest, waited
        ready = hi[i] - EPSILON
        heappush(running, (ready if ready > now else nextafter(now, inf), i))
        yield OPEN if i in children else LEAF, i
    for _, done in sorted(running):
        yield DONE, done
        if hi[done] > latest or (hi[done] == latest and lo[done] >= lo[waited]):
            latest, waited = hi[done], done
    graph.tail[holder], graph.last[holder] = hi[holder] - latest, waited
    yield CLOSE, holder


def replay(graph: Graph, gap: Sequence[float], tail: Sequence[float]) -> float:
    """E2E if the gaps and tails were these and everything still waited for what it waited for. Seconds."""
    end = [0.0] * len(tail)
    outer: list[float] = []
    now = 0.0
    for kind, i in zip(graph.steps, graph.whose, strict=True):
        if kind == LEAF:
            end[i] = now + gap[i] + tail[i]
        elif kind == DONE:
            if end[i] > now:  # noqa: PLR1730 - max() would double the time of a replay
                now = end[i]
        elif kind == OPEN:
            outer.append(now)
            now += gap[i]
        else:
            end[i] = now + tail[i]
            now = outer.pop()
    return end[0]


def slacks(graph: Graph, held: Contraction) -> list[float]:
    """How much longer each node could take without moving the task's end; infinite for spans that are no nodes."""
    gap, tail = graph.gap, graph.tail
    latest = [inf] * len(tail)
    latest[0] = held.hi[0]
    outer: list[float] = []
    bound = inf
    for kind, i in zip(reversed(graph.steps), reversed(graph.whose), strict=True):
        if kind == DONE:
            latest[i] = bound
        elif kind == LEAF:
            start = latest[i] - tail[i] - gap[i]
            if start < bound:  # noqa: PLR1730 - as above
                bound = start
        elif kind == CLOSE:
            outer.append(bound)
            bound = latest[i] - tail[i]
        else:
            bound = min(outer.pop(), bound - gap[i])
    return [until - end if until > end else 0.0 for until, end in zip(latest, held.hi, strict=True)]
