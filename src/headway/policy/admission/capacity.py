"""How many tokens of tasks a replica keeps warm: learnt from what it had to compute again."""

from typing import Final

_BLOCK: Final = 64
_SLACK: Final = 0.1
"""A tenth, and a block, may be computed again without anything having been lost."""
_CLIMB: Final = 0.1
_CREEP: Final = 0.01
"""Growth for each hit, in parts of the task's tokens: fast where nothing was lost before, slow where something was."""
_NEAR: Final = 0.9
_CUT: Final = 0.5


class Capacity:
    """Additive increase while everything is found warm, multiplicative decrease when something is not.

    Tokens are counted as admission counts them: the sum of the working sets of all tasks that have a place. So it
    does not matter whether the engine shares prefixes between tasks; what fits is what was seen to fit.
    """

    __slots__ = ("_ceiling", "_cut_at", "tokens")

    def __init__(self) -> None:
        self.tokens: float | None = None
        """``None``: it never lost anything."""
        self._ceiling = 0.0
        """What was held when something was lost last."""
        self._cut_at = float("-inf")

    def told(self, tokens: float) -> None:
        """The engine says how much it holds: a beginning, until something is seen."""
        if self.tokens is None:
            self.tokens = tokens

    def used(self, expected: int, cached: int, held: float, since: float, now: float) -> None:
        """A task came back and ``cached`` of its ``expected`` tokens were still there.

        Args:
            expected: tokens that it left behind.
            cached: those that the engine says it did not compute again.
            held: tokens of all tasks with a place there.
            since: when it left; what was lost before the last decrease says nothing against what holds since.
            now: epoch seconds.
        """
        lost = expected - cached
        if lost > max(_BLOCK, _SLACK * expected):
            if since >= self._cut_at:
                self._ceiling = held
                known = held if self.tokens is None else min(held, self.tokens)
                self.tokens = known * (1 - _CUT * lost / expected)
                self._cut_at = now
        elif self.tokens is not None and held > _NEAR * self.tokens:
            near = self.tokens > _NEAR * self._ceiling
            self.tokens += (_CREEP if near else _CLIMB) * expected
