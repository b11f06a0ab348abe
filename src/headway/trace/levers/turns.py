"""Iterations taken out of a task."""

from statistics import median
from typing import Final

from headway.core.span import ModelCall, ToolUse
from headway.trace.change import Change, below
from headway.trace.levers.case import Case
from headway.trace.loop import Turn

FAR: Final = 20
"""Times the median iteration; tools of a coding agent do take ten times as long now and then."""


def droppable(case: Case) -> list[Turn]:
    """Iterations that a task could do without.

    Not the answer, nor a sub-agent's, which its tool's answer needs, nor those that are `far_longer`.
    """
    kept = {turn.call for turn in far_longer(case)}
    return [turn for turn in _of_loop(case) if turn.call not in kept]


def far_longer(case: Case) -> list[Turn]:
    """Iterations that stand so far out that a mean with them in it is that of none.

    They are `FAR` times as long as the median or longer, and together longer than all the others: a night between two
    calls, a build that hung. Nobody expects to do without just these, or without a part of each.
    """
    turns = _of_loop(case)
    if not turns:
        return []
    usual = median(turn.seconds for turn in turns)
    out = [turn for turn in turns if turn.seconds >= FAR * usual > 0]
    return out if sum(turn.seconds for turn in out) > sum(turn.seconds for turn in turns) / 2 else []


def left_alone(case: Case) -> str:
    """Which iterations `far_longer` keeps, in a sentence; empty where there are none."""
    out = far_longer(case)
    if not out:
        return ""
    longest = f"{max(turn.seconds for turn in out):,.0f} s"
    if len(out) == 1:
        return f"One iteration of {longest} is over {FAR} times as long as the median: it is no average one and stays."
    return f"{len(out)} iterations of up to {longest} are over {FAR} times as long as the median: they stay."


def unwatched(case: Case) -> frozenset[int]:
    """Tools of which only a gap between two calls is known, without a result, and that make an iteration `far_longer`.

    Whether a tool was at work all that time, or a person was waited for, is not recorded.
    """
    spans = case.study.tree.spans
    found = set[int]()
    for turn in far_longer(case):
        took: dict[int, float] = {}
        for stretch in turn.stretches:
            took[stretch.owner] = took.get(stretch.owner, 0.0) + stretch.end - stretch.start
        for i, seconds in took.items():
            work = spans[i].work
            if isinstance(work, ToolUse) and work.inferred and work.result is None and seconds > turn.seconds / 2:
                found.add(i)
    return frozenset(found)


def gap_left_alone(case: Case) -> tuple[str, str]:
    """Which gaps `unwatched` keeps, in a sentence, and how it reads without numbers; empty where there are none."""
    out = [case.study.held.hi[i] - case.study.held.lo[i] for i in unwatched(case)]
    if not out:
        return "", ""
    gaps = f"One gap of {out[0]:,.0f} s" if len(out) == 1 else f"{len(out):,} gaps of up to {max(out):,.0f} s"
    stay = "stays" if len(out) == 1 else "stay"
    why = "as recorded: far longer than iterations usually are, and a person may have been waited for in {}."
    return (
        f"{gaps} between two calls {stay} {why.format('it' if len(out) == 1 else 'them')}",
        f"Gaps between two calls stay {why.format('them')}",
    )


def _of_loop(case: Case) -> list[Turn]:
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
