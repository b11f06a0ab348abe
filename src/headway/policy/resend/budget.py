"""How often calls may be sent more than once: a bucket that calls fill and resending empties."""

from typing import Final

RATIO: Final = 0.1
"""Resends for each call: in the worst case an outage makes a tenth more load, not several times as much."""
_BURST: Final = 10.0


class ResendBudget:
    """Each call adds ``ratio``, each resend takes 1; at most ``burst`` is saved up, and that is there to begin with."""

    __slots__ = ("_burst", "_left", "_ratio")

    def __init__(self, ratio: float = RATIO, burst: float = _BURST) -> None:
        self._ratio = ratio
        self._burst = self._left = burst

    @property
    def left(self) -> float:
        """Resends that could be made now."""
        return self._left

    def called(self) -> None:
        """A call was sent for the first time."""
        self._left = min(self._burst, self._left + self._ratio)

    def take(self) -> bool:
        """Whether one may be sent again; if so, it is taken."""
        if self._left < 1:
            return False
        self._left -= 1
        return True
