"""How long tasks are away at their tools, and how long it pays to keep their place."""

from collections import deque
from collections.abc import Collection
from math import log
from typing import Final

_KEPT: Final = 64
"""Durations remembered of each tool."""
_ENOUGH: Final = 8
"""Below so many, durations are taken to be exponential with their mean."""
_MEAN: Final = 2.0
"""Seconds, before anything is known: between a file being read and a test being run."""
_TOOLS: Final = 1_000
_FEW: Final = 16
_POINTS: Final = 16
_NEVER: Final = float("inf")
_QUANTILES: Final = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class ToolGaps:
    """Durations of each tool as the gateway sees them: from an answer to the task's next call."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[float]] = {}
        self._choices: dict[str, list[tuple[float, float]]] = {}
        """Times to wait, and the share that is back by then; made anew when a few more were seen."""
        self._fresh = 0

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
        choices = self._choices.get(tool)
        if choices is None:
            choices = self._choices[tool] = _choices(self._seen.get(tool, ()))
        best, best_gain = 0.0, 0.0
        for time, share in choices:
            gain = share * worth - cost * time
            if gain > best_gain:
                best, best_gain = time, gain
        return best

    def _of(self, tool: str) -> deque[float]:
        seen = self._seen.get(tool)
        self._fresh += 1
        if seen is None or len(seen) < _KEPT or self._fresh >= _FEW or len(self._choices) > _TOOLS:
            self._choices.clear()
            self._fresh = 0
        if seen is None:
            if len(self._seen) >= _TOOLS:
                del self._seen[next(iter(self._seen))]
            seen = self._seen[tool] = deque(maxlen=_KEPT)
        return seen


def _choices(seen: Collection[float]) -> list[tuple[float, float]]:
    """At most 16 times with the share of ``seen`` that they cover."""
    if len(seen) < _ENOUGH:
        known = [time for time in seen if time < _NEVER]
        mean = (_MEAN + sum(known)) / (1 + len(known))
        return [(-mean * log(1 - share), share) for share in _QUANTILES]
    times = sorted(seen)
    step = max(1, len(times) // _POINTS)
    places = range(step - 1, len(times), step)
    return [(times[place], (place + 1) / len(times)) for place in places if times[place] < _NEVER]
