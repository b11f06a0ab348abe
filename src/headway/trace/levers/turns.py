"""Iterations taken out of a task."""

from headway.core.span import ModelCall, ToolUse
from headway.trace.change import Change, below
from headway.trace.levers.case import Case
from headway.trace.loop import Turn


def droppable(case: Case) -> list[Turn]:
    """Iterations that a task could do without: not the answer, and not a sub-agent's, which its tool's answer needs."""
    return [turn for turn in case.study.turns[:-1] if not case.study.in_tool[turn.call]]


def drop_turn(case: Case, change: Change, turn: Turn) -> None:
    """Take a turn out: its call, its hops and its tools, on the path and beside it; but no sub-agent's work."""
    issued = case.issued.get(case.study.tree.spans[turn.call].id, [])
    tools = {stretch.owner for stretch in turn.stretches if case.study.tree.kinds[stretch.owner] is ToolUse}
    busy = {i for i in {*tools, *issued} if _holds_calls(case, i)}
    for stretch in turn.stretches:
        if stretch.owner not in busy:
            change.drop_stretch(stretch)
    for i in issued:
        if i not in busy:
            for node in below(case.children, i):
                change.drop(node)


def _holds_calls(case: Case, top: int) -> bool:
    return any(case.study.tree.kinds[i] is ModelCall for i in below(case.children, top))
