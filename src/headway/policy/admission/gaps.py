"""How long tasks are away at their tools, and how long it pays to keep their place."""

from collections import deque
from math import log
from typing import Final

_KEPT: Final = 64
"""Durations remembered of each tool."""
_ENOUGH: Final = 8
"""Below so many, durations are taken to be exponential with their mean."""
_MEAN: Final = 2.0
"""Seconds, before anything is known: between a file being read and a test being run."""
_TOOLS: Final = 1_000
_NEVER: Final = float("inf")
_QUANTILES: Final = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class ToolGaps:
    """Durations of each tool as the gateway sees them: from an answer to the task's next call."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[float]] = {}

    def returned(self, tool: str, seconds: float, *, given_up: bool = False) -> None:
        """A task came back from ``tool``, though it may have been given up before."""
        seen = self._of(tool)
        if given_up and _NEVER in seen:
            seen.remove(_NEVER)
        seen.append(seconds)

    def gone(self, tool: str) -> None:
        """A task was given up after ``tool``: as far as is known it was its last."""
        self._of(tool).append(_NEVER)

    def ttl(self, tool: str, worth: float, cost: float) -> float:
        """Seconds for which it pays to keep a task's place while it is at ``tool``.

        Continuum's rule: the τ that maximises P(duration ≤ τ) · worth - cost · τ, with P from what was seen.

        Args:
            tool: its name.
            worth: seconds saved where the task finds its place kept: prefill and queueing.
            cost: seconds that others lose in each second that the place is kept.
        """
        seen = self._seen.get(tool, ())
        if len(seen) >= _ENOUGH:
            times = sorted(seen)
            choices = [(time, (index + 1) / len(times)) for index, time in enumerate(times) if time < _NEVER]
        else:
            known = [time for time in seen if time < _NEVER]
            mean = (_MEAN + sum(known)) / (1 + len(known))
            choices = [(-mean * log(1 - share), share) for share in _QUANTILES]
        best, best_gain = 0.0, 0.0
        for time, share in choices:
            gain = share * worth - cost * time
            if gain > best_gain:
                best, best_gain = time, gain
        return best

    def _of(self, tool: str) -> deque[float]:
        seen = self._seen.get(tool)
        if seen is None:
            if len(self._seen) >= _TOOLS:
                del self._seen[next(iter(self._seen))]
            seen = self._seen[tool] = deque(maxlen=_KEPT)
        return seen
