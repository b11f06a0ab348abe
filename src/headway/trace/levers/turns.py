"""Iterations taken out of a task."""

from headway.core.span import ModelCall, ToolUse
from headway.trace.change import Change, below
from headway.trace.levers.case import Case
from headway.trace.loop import Turn


def droppable(case: Case) -> list[Turn]:
    """Iterations that a task could do without: not the answer, and not a sub-agent's, which its tool's answer needs."""
    return [turn for turn in case.study.turns[:-1] if not case.study.in_tool[turn.call]]


def thin_out(case: Case, change: Change, fewer: int) -> float:
    """Take that many iterations of average length out: calls, hops and tools, on the path and beside it.

    Nobody knows which iterations a task could do without, and those of median length would leave it all its longest.
    So each that could go is shortened by the same share, which on a chain takes away ``fewer`` times their mean. A
    sub-agent's work stays.

    Args:
        case: the task.
        change: made last of all changes, since it shortens whatever they left.
        fewer: at most as many as `droppable` has.

    Returns:
        What share of each of them is left.
    """
    turns = droppable(case)
    left = 1 - fewer / len(turns) if turns else 1.0
    gaps, tails = set[int](), set[int]()
    for turn in turns:
        issued = case.issued.get(case.study.tree.spans[turn.call].id, [])
        tools = {stretch.owner for stretch in turn.stretches if case.study.tree.kinds[stretch.owner] is ToolUse}
        busy = {i for i in {*tools, *issued} if _holds_calls(case, i)}
        for stretch in turn.stretches:
            if stretch.owner not in busy:
                (gaps if stretch.is_gap else tails).add(stretch.node)
        inner = [node for i in issued if i not in busy for node in below(case.children, i)]
        gaps.update(inner)
        tails.update(inner)
    change.shorten(gaps, tails, left)
    return left


def _holds_calls(case: Case, top: int) -> bool:
    return any(case.study.tree.kinds[i] is ModelCall for i in below(case.children, top))
