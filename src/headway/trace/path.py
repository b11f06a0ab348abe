"""The critical path: the segments that tile a task from end to end, each with its phase."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from headway.core.span import ModelCall, Step
from headway.trace.contract import Contraction, contract
from headway.trace.flush import FEWEST, TOGETHER, ended_by_flush
from headway.trace.graph import Graph, graph_of
from headway.trace.phases import HOP, MODEL, OWN, RETRY, Phase, Segment, clip, split
from headway.trace.resent import made_again, pauses
from headway.trace.tree import Tree

__all__ = ["Phase", "Segment", "Stretch", "critical_path", "flushed", "own_segments", "stretches"]


_CALLERS: Final = "client_stalled"
"""The one error of a stream in which the engine is not waited for: its caller stopped reading."""


class Stretch(Struct, frozen=True, gc=False):
    """A part of the path that is one gap or one tail of the graph."""

    owner: int
    """The span whose time it is, by the tree's index."""
    node: int
    """The span whose ``gap`` or ``tail`` it is."""
    is_gap: bool
    start: float
    end: float
    segments: tuple[Segment, ...]
    """Never none; they tile it."""

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start


def critical_path(tree: Tree) -> tuple[Segment, ...]:
    """The segments that tile ``[0, E2E]``: each starts where the one before it ends, to the last bit.

    Walked from the end: what a span's end waited for last is on the path, then what that one's start waited for last,
    and so on; time that nothing was waited for in belongs to the span that was at work around it. A task of no length
    has no segments.
    """
    held = contract(tree)
    graph, whole = graph_of(held), flushed(tree, held)
    again = {} if whole else made_again(tree, held)
    own = own_segments(tree, held, whole=whole, lost=again)
    walked = stretches(tree, graph, held, own, pauses(again, graph))
    return tuple([segment for stretch in walked for segment in stretch.segments])


def flushed(tree: Tree, held: Contraction) -> bool:
    """Whether a flush ended the work, as `ended_by_flush` tells; what never ended says nothing: its end was made."""
    end, lo, hi = held.hi[0], held.lo, held.hi
    ended = [i for i in held.nodes[1:] if hi[i] >= end - TOGETHER and tree.spans[i].end is not None]
    if len(ended) < FEWEST:  # so few that nothing more needs to be looked at
        return False
    holds = {held.holder[i] for i in held.nodes}
    leaves = [(lo[i], hi[i]) for i in held.nodes[1:] if i not in holds and tree.spans[i].end is not None]
    return ended_by_flush(leaves, end)


def own_segments(
    tree: Tree, held: Contraction, *, whole: bool, lost: Collection[int] = ()
) -> list[tuple[Segment, ...]]:
    """Every span's own phases; none for steps, whose time is that of what they hold and the hops between.

    Args:
        tree: the task.
        held: what it waited for.
        whole: leave the calls unsplit, because what is known of their times cannot be trusted.
        lost: calls that failed and were made again: all of each is a failed attempt.
    """
    segments: list[tuple[Segment, ...]] = [()] * len(tree.spans)
    axis, calls = tree.axis, set(held.calls)
    rows = zip(tree.spans, tree.kinds, tree.start, tree.end, strict=True)
    for i, (span, kind, start, end) in enumerate(rows):
        if kind is Step or end <= start:
            continue
        if i in lost:
            segments[i] = (Segment(span.id, RETRY, start, end),)
        elif kind is not ModelCall:
            segments[i] = (Segment(span.id, OWN[kind], start, end),)
        elif i in calls and type(span.work) is ModelCall:
            if whole:
                segments[i] = (Segment(span.id, MODEL, start, end),)
            else:
                silent = span.error is not None and span.error != _CALLERS
                segments[i] = split(span.id, span.work, start, end, axis, silent=silent)
    return segments


def stretches(
    tree: Tree,
    graph: Graph,
    held: Contraction,
    own: Sequence[tuple[Segment, ...]],
    paused: Collection[int] = (),
) -> list[Stretch]:
    """Walk the graph from the task's end to its start; the path in order of time.

    The gaps before ``paused`` were waited for after a failed attempt.

    A tool with a sub-agent's call in it, and then another call::

        root  0 ------------------------------ 6
        tool  0 --------------- 4
        sub     0.5 ----- 3
        call                      4.5 -------- 6

    Read from below, as it is walked:

    ======= ===== ==== =================================================
    seconds owner node
    ======= ===== ==== =================================================
    0-0.5   tool  sub  sub's gap: it waited for its holder's start alone
    0.5-3   sub   sub  its tail: it holds nothing
    3-4     tool  tool its tail: its end waited for sub
    4-4.5   root  call call's gap: its start waited for the tool's end
    4.5-6   call  call its tail; the root's end waited for it, at once
    ======= ===== ==== =================================================

    A second tool from 0 to 2 would not appear: nothing waited for its end last, so it has slack.
    """
    lo, hi, holder, before, last = held.lo, held.hi, held.holder, graph.before, graph.last
    backwards: list[Stretch] = []
    cursor = hi[0]

    def lay(owner: int, node: int, since: float, *, is_gap: bool) -> None:
        nonlocal cursor
        if since >= cursor:  # what was waited for ended up to EPSILON after the start that waited for it
            return
        mine = own[owner]
        pause = is_gap and node in paused
        if mine and not pause:
            parts = clip(mine, since, cursor)
        else:
            parts = (Segment(tree.spans[owner].id, RETRY if pause else HOP, since, cursor),)
        backwards.append(Stretch(owner, node, is_gap, since, cursor, parts))
        cursor = since

    i = 0
    while True:
        waited = last[i]
        lay(i, i, lo[i] if waited == i else hi[waited], is_gap=False)
        if waited != i:
            i = waited
            continue
        while i and before[i] == holder[i]:  # it started with its holder
            lay(holder[i], i, lo[holder[i]], is_gap=True)
            i = holder[i]
        if not i:
            break
        lay(holder[i], i, hi[before[i]], is_gap=True)
        i = before[i]
    backwards.reverse()
    return backwards
