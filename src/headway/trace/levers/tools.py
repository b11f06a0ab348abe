"""Quicker tools: side by side, or each one faster."""

from collections.abc import Iterable, Sequence

from headway.core.span import ToolUse
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.levers.lever import Advice, Lever, Saved, predicted
from headway.trace.phases import RETRIEVAL, TOOL


def parallel_tools(case: Case) -> Iterable[Lever]:
    """The tools of one response at once."""
    change = Change(case.study)
    guessed = at_once(case, change)
    guess = (
        " Where only the gap between response and next request is known, it is taken to be its tools one after another,"
        " equally long."
    )
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="parallel-tools",
            name="tools in parallel",
            assumes="Tools that one response asked for do not depend on each other." + (guess if guessed else ""),
            tradeoff="A burst on whatever the tools call; tools that write must be kept in order.",
            rule="The tools of one response take the longest of their times, not the sum.",
            how="Start every tool call of a response at once, and send the results back together.",
        ),
    )


def at_once(case: Case, change: Change) -> bool:
    """Let the tools of each response run side by side; whether gaps that several share had to be guessed apart."""
    holder = case.study.held.holder
    guessed = False
    for tools in case.issued.values():
        for above in {holder[i] for i in tools}:
            guessed |= _side_by_side(case, change, [i for i in tools if holder[i] == above])
    return guessed


def _side_by_side(case: Case, change: Change, group: Sequence[int]) -> bool:
    """Let tools in order of start run at once; whether the gap they share had to be guessed apart."""
    if len(group) < 2:  # noqa: PLR2004 - side by side takes two
        return False
    held, works = case.study.held, [case.study.tree.spans[i].work for i in group]
    if all(isinstance(work, ToolUse) and work.inferred for work in works):
        if case.children.keys() & set(group):
            return False  # sub-agents inside show what ran when
        for i in group:
            change.tail[i] /= len(group)
        return True
    longest = max(group, key=lambda i: held.hi[i] - held.lo[i] if i in case.children else change.tail[i])
    change.side_by_side(group, longest, case.children)
    return False


def faster_tools(case: Case) -> Iterable[Lever]:
    """Tools and retrievals in half the time."""
    change = Change(case.study)
    change.scale([*case.shares[TOOL], *case.shares[RETRIEVAL]], lambda _: 0.5)
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="faster-tools",
            name="tools twice as fast",
            assumes="Tools and retrievals take half as long; where a tool's time is a gap, the agent's code in it too.",
            tradeoff="Cached results grow old; more machine costs money.",
            rule="A tool on the critical path counts in full; one with slack counts nothing.",
            how="Cache results of tools, keep their processes warm, and give the slow ones more machine.",
        ),
    )
