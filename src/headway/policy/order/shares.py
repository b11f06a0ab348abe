"""Weighted shares of a resource between those who want it: start-time fair queueing (Goyal, Vin, Cheng 1996)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_EQUAL: Final[Mapping[str, float]] = MappingProxyType({})
_MOST: Final = 10_000


class Shares:
    """Whose turn it is, so that all who keep asking get tokens in proportion to their weights.

    Each has a virtual finish; it is the turn of the least start = max(virtual time, finish), and taking c tokens
    moves its finish to start + c / weight. For two who both ask throughout, what they got differs by no more than their
    largest requests: |got_a / w_a - got_b / w_b| ≤ c_a / w_a + c_b / w_b. Who was away saves nothing up.

    Args:
        weights: by name; who is not named has 1.
    """

    def __init__(self, weights: Mapping[str, float] = _EQUAL) -> None:
        self._weights = weights
        self._finish: dict[str, float] = {}
        self._now = 0.0

    def start(self, name: str) -> float:
        """Virtual time at which ``name`` may begin."""
        return max(self._now, self._finish.get(name, 0.0))

    def take(self, name: str, tokens: float) -> None:
        """``name`` is served ``tokens``, or as many as are expected; see `correct`."""
        start = self._now = self.start(name)
        self._finish[name] = start + tokens / self._weights.get(name, 1.0)
        if len(self._finish) > _MOST:
            self._finish = {one: finish for one, finish in self._finish.items() if finish > start}

    def correct(self, name: str, tokens: float) -> None:
        """It came to ``tokens`` more than was taken, or fewer."""
        if name in self._finish:
            self._finish[name] += tokens / self._weights.get(name, 1.0)
