"""The critical path: the segments that tile a task from end to end, each with its phase."""

from msgspec import Struct

from headway.core.span import ModelCall
from headway.core.task import SpanId
from headway.trace.contract import Contraction, contract
from headway.trace.graph import Graph, graph_of
from headway.trace.phases import Phase, Piece, clip, phase_of, split
from headway.trace.tree import Tree

__all__ = ["Phase", "Segment", "Tile", "critical_path", "pieces_of", "tiles"]

FLUSH = 0.005
"""Seconds before the root's end in which spans that a flush ended lie; traces under 20 times that are not judged."""

FLUSHED = 3


class Segment(Struct, frozen=True, gc=False):
    """One tile of the critical path; seconds from the task's start."""

    span: SpanId
    phase: Phase
    start: float
    end: float


class Tile(Struct, frozen=True, gc=False):
    """A segment, still tied to the graph: the span that owns the time, and the gap or tail it is a part of."""

    owner: int
    node: int
    """The span whose ``gap`` or ``tail`` this is."""
    is_gap: bool
    phase: Phase
    start: float
    end: float


def critical_path(tree: Tree) -> tuple[Segment, ...]:
    """The segments that tile ``[0, E2E]``: each starts where the one before it ends, to the last bit.

    Walked from the end: what a span's end waited for last is on the path, then what that one's start waited for last,
    and so on; time that nothing was waited for in belongs to the span that was at work around it. A task of no length
    has no segments.
    """
    held = contract(tree)
    walked = tiles(graph_of(held), held, pieces_of(tree, held))
    return tuple(Segment(tree.spans[tile.owner].id, tile.phase, tile.start, tile.end) for tile in walked)


def flushed(held: Contraction) -> bool:
    """Whether half of the work, of FLUSHED spans or more, ends together with the root: by a flush, not by itself."""
    end = held.hi[0]
    holds = set(map(held.holder.__getitem__, held.nodes))
    work = [i for i in held.nodes[1:] if i not in holds]
    together = sum(held.hi[i] >= end - FLUSH for i in work)
    return len(work) >= FLUSHED and 2 * together >= len(work) and end >= 20 * FLUSH


def pieces_of(tree: Tree, held: Contraction) -> list[list[Piece]]:
    """Every span's own phases; none for steps, whose time is that of what they hold and the hops between."""
    pieces: list[list[Piece]] = []
    calls = set(held.calls)
    unsplit = flushed(held)
    for i, span in enumerate(tree.spans):
        start, end = tree.start[i], tree.end[i]
        if i in calls and isinstance(span.work, ModelCall) and not unsplit:
            pieces.append(split(span.work, start, end, tree.at))
            continue
        phase = phase_of(span.work)
        if end <= start or phase is Phase.HOP or (phase is Phase.MODEL and i not in calls):
            pieces.append([])
        else:
            pieces.append([(phase, start, end)])
    return pieces


def tiles(graph: Graph, held: Contraction, pieces: list[list[Piece]]) -> list[Tile]:
    """Walk the graph from the task's end to its start; the tiles in order of time."""
    backwards: list[Tile] = []
    cursor = held.hi[0]

    def lay(owner: int, node: int, since: float, *, is_gap: bool) -> None:
        nonlocal cursor
        since = max(since, 0.0)
        own = clip(pieces[owner], since, cursor) or ([(Phase.HOP, since, cursor)] if since < cursor else [])
        backwards.extend(Tile(owner, node, is_gap, phase, a, b) for phase, a, b in reversed(own))
        cursor = min(cursor, since)

    i = 0
    while True:
        waited = graph.last[i]
        lay(i, i, held.lo[i] if waited == i else held.hi[waited], is_gap=False)
        if waited != i:
            i = waited
            continue
        while i and graph.before[i] == held.holder[i]:  # it started with its holder
            lay(held.holder[i], i, held.lo[held.holder[i]], is_gap=True)
            i = held.holder[i]
        if not i:
            break
        lay(held.holder[i], i, held.hi[graph.before[i]], is_gap=True)
        i = graph.before[i]
    backwards.reverse()
    return backwards
