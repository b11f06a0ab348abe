"""Calls that failed and that their caller then made again: one call of the loop, however often it was tried.

Some callers count how often they have sent a call. Where one does, its count tells; else it is taken from what the
calls were asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from headway.core.span import ModelCall
from headway.trace.asked import asked_for
from headway.trace.contract import Contraction
from headway.trace.graph import Graph
from headway.trace.tree import EPSILON, Tree

SAME: Final = 0.02
"""Of the input tokens: two calls whose prompts are not in the record and differ by less are taken for the same."""


def made_again(tree: Tree, held: Contraction) -> dict[int, int]:
    """Calls that failed, each with the same call that follows it, in order of start; indices of the tree."""
    if not any(tree.spans[i].error is not None for i in held.calls):
        return {}
    issued = asked_for(tree, held)
    again: dict[int, int] = {}
    for chat in chats_of(tree, held):
        counted = _counted(tree, held, chat)
        again |= counted
        taken = set(counted.values())
        again |= {
            i: after
            for i, after in pairwise(chat)
            if tree.spans[i].error is not None
            and i not in counted
            and after not in taken
            and held.lo[after] >= held.hi[i] - EPSILON
            and i not in issued
            and _same(tree.spans[i].work, tree.spans[after].work)
        }
    return again


def _counted(tree: Tree, held: Contraction, chat: Sequence[int]) -> dict[int, int]:
    """Those of one chat whose caller counts: each with the try that had been sent once more when it began."""
    open_tries: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for i in chat:
        work = tree.spans[i].work
        if not isinstance(work, ModelCall) or work.sent_before is None:
            continue
        before = [k for k in open_tries.get(work.sent_before - 1, ()) if held.hi[k] <= held.lo[i] + EPSILON]
        if before:
            last = max(before, key=held.hi.__getitem__)
            open_tries[work.sent_before - 1].remove(last)
            found[last] = i
        if tree.spans[i].error is not None:
            open_tries.setdefault(work.sent_before, []).append(i)
    return found


def chats_of(tree: Tree, held: Contraction) -> list[list[int]]:
    """Calls in order of start, apart by what holds them and by model: each may be one growing conversation."""
    chats: dict[tuple[int, str], list[int]] = {}
    for i in sorted(held.calls, key=tree.start.__getitem__):
        work = tree.spans[i].work
        if isinstance(work, ModelCall) and not held.adrift[i]:
            chats.setdefault((held.holder[i], work.model), []).append(i)
    return list(chats.values())


def pauses(again: Mapping[int, int], graph: Graph) -> frozenset[int]:
    """Calls whose start waited for nothing but the end of the failed try before them: their gap is the pause."""
    return frozenset(after for i, after in again.items() if graph.before[after] == i)


def last_tries(again: Mapping[int, int], calls: Iterable[int]) -> dict[int, int]:
    """For each of ``calls``, the last try of the same call that is among them too; itself where it is that."""
    there = set(calls)
    found: dict[int, int] = {}
    for i in calls:
        last = i
        while (after := again.get(last)) is not None and after in there:
            last = after
        found[i] = last
    return found


def _same(a: object, b: object) -> bool:
    if not isinstance(a, ModelCall) or not isinstance(b, ModelCall):
        return False
    if a.prompt is not None and b.prompt is not None:
        return a.prompt == b.prompt
    mine, theirs = a.usage.input_tokens, b.usage.input_tokens
    if mine is None or theirs is None:
        return b.sent_before is None  # whoever counts says that it did not send this one again
    return abs(mine - theirs) <= SAME * max(mine, theirs)
