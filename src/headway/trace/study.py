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
    own = own_segments(tree, held, whole=whole)
    walked = stretches(tree, graph, held, own)
    lead_in, turns = turns_of(walked, frozenset(held.calls))
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
        in_tool=in_tool,
    )
