"""All that the analyses share of one task, derived from its spans once."""

from collections.abc import Sequence
from itertools import repeat
from operator import is_

from msgspec import Struct

from headway.core.span import Span, ToolUse
from headway.trace.contract import Contraction, contract
from headway.trace.graph import Graph, graph_of
from headway.trace.loop import Turn, turns_of
from headway.trace.path import Segment, Stretch, flushed, own_segments, stretches
from headway.trace.resent import last_tries, made_again, pauses
from headway.trace.tree import Tree, grow


class Study(Struct, frozen=True, kw_only=True):
    """A task's tree, what it waited for, its replayable graph, and its path cut into turns of the loop."""

    tree: Tree
    held: Contraction
    graph: Graph
    own: list[tuple[Segment, ...]]
    """Every span's own phases."""
    flushed: bool
    """Whether a flush ended the spans, so that their phases are not split."""
    walked: list[Stretch]
    """The critical path."""
    lead_in: list[Stretch]
    turns: list[Turn]
    again: dict[int, int]
    """Calls that failed, each with the same call that its caller made after it; none where a flush ended the spans."""
    paused: frozenset[int]
    """Those of the latter that waited for nothing else: the gap before each is a pause after a failed attempt."""
    in_tool: list[bool]
    """Whether a node is a tool or works inside one, as a sub-agent's calls do."""

    @property
    def e2e(self) -> float:
        """Seconds from the task's start to its end."""
        return self.held.hi[0]


Task = Sequence[Span] | Study
"""All spans of one task, in any order and any state; or what was derived from them, so that it is derived once."""


def study(task: Task) -> Study:
    """Derive it from a task's spans; a study stays as it is."""
    if isinstance(task, Study):
        return task
    tree = grow(task)
    held = contract(tree)
    graph = graph_of(held)
    whole = flushed(tree, held)
    again = {} if whole else made_again(tree, held)
    paused = pauses(again, graph)
    own = own_segments(tree, held, whole=whole, lost=again)
    walked = stretches(tree, graph, held, own, paused)
    calls = frozenset(held.calls)
    tries = last_tries(again, [stretch.owner for stretch in walked if stretch.owner in calls])
    lead_in, turns = turns_of(walked, tries)
    in_tool = list(map(is_, tree.kinds, repeat(ToolUse)))  # at or in one
    for i in held.nodes:
        if in_tool[held.holder[i]]:
            in_tool[i] = True
    return Study(
        tree=tree,
        held=held,
        graph=graph,
        own=own,
        flushed=whole,
        walked=walked,
        lead_in=lead_in,
        turns=turns,
        again=again,
        paused=paused,
        in_tool=in_tool,
    )
