"""Quicker tools: side by side, or each one faster."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from headway.core.span import ToolUse
from headway.trace.change import Change
from headway.trace.levers.case import Case
from headway.trace.levers.lever import Advice, Lever, Saved, predicted
from headway.trace.levers.turns import gap_left_alone, unwatched
from headway.trace.phases import RETRIEVAL, TOOL

_TOGETHER: Final = 0.01
"""Seconds; results that came no further apart were written down together, and do not tell when their tools ended."""


class AtOnce(Struct, frozen=True):
    """What was to be guessed where tools were let run side by side."""

    bounded: bool
    """Whether there were tools of which only when their results came is known."""
    untold: int
    """Tools left as they are, because nothing tells how long each of those that share a gap took."""

    @property
    def said(self) -> tuple[str, ...]:
        """In sentences, each with how it reads without this task's numbers."""
        return tuple(sentence for sentence, _ in self.notes)

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Sentences, each with how it reads without this task's numbers."""
        found: list[tuple[str, str]] = []
        if self.bounded:
            bound = (
                "An upper bound: where only results were timed, each tool is taken to have run from the result before"
                " until its own."
            )
            found.append((bound, bound))
        if self.untold:
            why = "share gaps with others and nothing tells how long each took: they stay as they are."
            found.append((f"{self.untold:,} tools {why}", f"Some tools {why}"))
        return found


def parallel_tools(case: Case) -> Iterable[Lever]:
    """The tools of one response at once."""
    change = Change(case.study)
    guessed = at_once(case, change)
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="parallel-tools",
            name="tools in parallel",
            assumes=" ".join(["Tools that one response asked for do not depend on each other.", *guessed.said]),
            tradeoff="A burst on whatever the tools call; tools that write must be kept in order.",
            rule="The tools of one response take the longest of their times, not the sum.",
            how="Start every tool call of a response at once, and send the results back together.",
        ),
    )


def at_once(case: Case, change: Change) -> AtOnce:
    """Let the tools of each response run side by side, as far as it can be told how long each took."""
    holder = case.study.held.holder
    bounded, untold = False, 0
    for tools in case.issued.values():
        for above in {holder[i] for i in tools}:
            group = [i for i in tools if holder[i] == above]
            gaps = [i for i in group if _only_a_gap(case, i)]
            if len(group) < 2 or (gaps and case.children.keys() & set(group)):  # noqa: PLR2004 - it takes two
                continue  # sub-agents inside show what ran when
            if gaps and _end_together(case, group):
                untold += len(group)
                continue
            bounded |= bool(gaps)
            _side_by_side(case, change, group)
    return AtOnce(bounded, untold)


def _side_by_side(case: Case, change: Change, group: Sequence[int]) -> None:
    """Let tools in order of start run at once."""
    held = case.study.held
    took = {i: held.hi[i] - held.lo[i] if i in case.children else change.tail[i] for i in group}
    ended = held.lo[group[0]]
    for i in sorted(group, key=held.hi.__getitem__):
        if _only_a_gap(case, i):  # from the result before, as if they had run one after another
            alone = held.hi[i] - max(ended, held.lo[i])
            took[i] = change.tail[i] = change.tail[i] * (alone / whole if (whole := held.hi[i] - held.lo[i]) else 1.0)
        ended = held.hi[i]
    change.side_by_side(group, max(group, key=took.__getitem__), case.children)


def _only_a_gap(case: Case, i: int) -> bool:
    work = case.study.tree.spans[i].work
    return isinstance(work, ToolUse) and work.inferred


def _end_together(case: Case, group: Sequence[int]) -> bool:
    ends = sorted(case.study.held.hi[i] for i in group)
    return any(b - a < _TOGETHER for a, b in pairwise(ends))


def faster_tools(case: Case) -> Iterable[Lever]:
    """Tools and retrievals in half the time."""
    change = Change(case.study)
    stay = unwatched(case)
    change.scale([*case.shares[TOOL], *case.shares[RETRIEVAL]], lambda i: 1.0 if i in stay else 0.5)
    yield predicted(
        case,
        change,
        Saved(),
        Advice(
            key="faster-tools",
            name="tools twice as fast",
            assumes="Tools and retrievals take half as long; where a tool's time is a gap, the agent's code in it too.",
            stays=gap_left_alone(case),
            tradeoff="Cached results grow old; more machine costs money.",
            rule="A tool on the critical path counts in full; one with slack counts nothing.",
            how="Cache results of tools, keep their processes warm, and give the slow ones more machine.",
        ),
    )
