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
    does not matter whether the engine shares prefixes between tasks; what fits is what was seen to fit. Until
    something was lost, an engine that says how many calls it serves side by side is given that many tasks, and one more
    each time that a task is found warm which comes back to an engine with nothing else to do though all places are
    taken: a task more than keeps it busy could only lose.
    """

    __slots__ = ("_ceiling", "_cut_at", "_grown_at", "slots", "tasks", "tokens")

    def __init__(self) -> None:
        self.tokens: float | None = None
        """``None``: it never lost anything."""
        self.slots = 1
        """Tasks that always may have a place: as many as the engine serves side by side, one where it does not say."""
        self.tasks: int | None = None
        """Tasks that may have a place until something was lost; ``None``: any number."""
        self._ceiling = 0.0
        """What was held when something was lost last."""
        self._cut_at = self._grown_at = float("-inf")

    def told(self, slots: int) -> None:
        """The engine says how many calls it serves side by side, each from a memory of its own."""
        self.slots = max(1, slots)
        if self.tokens is None and self.tasks is None:
            self.tasks = self.slots

    def fits(self, count: int, held: float, need: int) -> bool:
        """Whether a task that needs ``need`` tokens stays warm beside ``count`` others that hold ``held``."""
        if count < self.slots:
            return True
        if self.tokens is not None:
            return held + need <= self.tokens
        return self.tasks is None or count < self.tasks

    def used(
        self, expected: int, cached: int, count: int, held: float, since: float, now: float, *, idle: bool
    ) -> None:
        """A task came back and ``cached`` of its ``expected`` tokens were still there.

        Args:
            expected: tokens that it left behind.
            cached: those that the engine says it did not compute again.
            count: tasks with a place there.
            held: tokens of all of them.
            since: when it left; what was lost before the last decrease says nothing against what holds since, and what
                was found warm from before the last increase nothing for it.
            now: epoch seconds.
            idle: the engine could have served more calls when it came.
        """
        lost = expected - cached
        if lost > max(_BLOCK, _SLACK * expected):
            if since >= self._cut_at:
                self._ceiling = held
                known = held if self.tokens is None else min(held, self.tokens)
                self.tokens = known * (1 - _CUT * lost / expected)
                self._cut_at = now
        elif self.tokens is not None:
            if held > _NEAR * self.tokens:
                near = self.tokens > _NEAR * self._ceiling
                self.tokens += (_CREEP if near else _CLIMB) * expected
        elif idle and self.tasks is not None and count >= self.tasks and since >= self._grown_at:
            self.tasks += 1
            self._grown_at = now
