"""What a prompt has in common with an earlier one: what a cache could give, and what breaks it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from headway.core.prompt import Part
from headway.trace.findings.case import Case
from headway.trace.tree import EPSILON

LOOKED_BACK = 8
"""Earlier calls that a prompt is compared with; conversations that take turns are seldom more than that."""


class Shared(Struct, frozen=True):
    """A call's prompt beside the earlier one that has most in common with it."""

    call: int
    earlier: int
    intact: int
    """Tokens of the earlier prompt that this one begins with."""
    lost: int
    """Tokens of the earlier prompt that come again, but behind the first message that differs."""
    differs: int | None
    """Index of that message; ``None`` where the earlier prompt is this one's beginning."""
    volatile: bool
    """Whether nothing but times and ids tells that message from the earlier one."""


def shared(case: Case) -> Iterator[Shared]:
    """For each call whose prompt is known, and those of its own chat that had ended when it started."""
    held = case.study.held
    for chat in case.chats:
        for k, i in enumerate(chat):
            mine = case.call(i).prompt
            if not mine:
                continue
            ended = [j for j in chat[max(k - LOOKED_BACK, 0) : k] if held.hi[j] <= held.lo[i] + EPSILON]
            best: Shared | None = None
            for j in reversed(ended):
                theirs = case.call(j).prompt
                if theirs and (tokens := case.call(j).usage.input_tokens) is not None:
                    found = _compared(i, j, mine, theirs, tokens)
                    if best is None or found.intact + found.lost > best.intact + best.lost:
                        best = found
                    if found.differs is None:
                        break
            if best is not None:
                yield best


def _compared(i: int, j: int, mine: Sequence[Part], theirs: Sequence[Part], tokens: int) -> Shared:
    if mine[: len(theirs)] == theirs:
        return Shared(i, j, tokens, 0, None, volatile=False)
    pairs = zip(mine, theirs, strict=False)
    k = next((at for at, (a, b) in enumerate(pairs) if a.digest != b.digest), min(len(mine), len(theirs)))
    chars = sum(part.chars for part in theirs)
    begin = sum(part.chars for part in theirs[:k])
    volatile = k < min(len(mine), len(theirs)) and mine[k].shape == theirs[k].shape
    ahead = Counter(part.shape for part in mine[k:])
    again = 0
    for part in theirs[k:]:
        if ahead[part.shape] > 0:
            ahead[part.shape] -= 1
            again += part.chars
    per_char = tokens / chars if chars else 0.0
    return Shared(i, j, int(begin * per_char), int(again * per_char), k, volatile=volatile)
