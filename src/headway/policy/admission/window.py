"""How many calls a replica is given at a time, so that what waits waits where its order can still be changed."""

from typing import Final

from headway.policy.order.waiting import Lane
from headway.policy.routing.flights import Load
from headway.policy.speed import Pace

_FIRST: Final = 8.0
_LEAST: Final = 2.0
"""One that is being computed and one that is next: with fewer a replica stands still between calls."""
_MOST: Final = 1024.0
_TOLERANCE: Final = 2.0
"""A first token may take twice as long as alone: beyond that the call waited in the engine."""
_NOISE: Final = 0.25
"""Seconds that are not worth a smaller window, however short the first token took alone."""
_DECREASE: Final = 0.85
_QUEUE: Final = 0.5
"""Seconds of prefill that may lie before a replica: enough to keep it busy."""
_FULL: Final = 0.8
_FADING: Final = 60.0


class Window:
    """Calls in flight at one replica: additive increase, multiplicative decrease, by the first token's delay.

    Until the first delay the window grows by one with each call that finds it full, as TCP's slow start; from then on
    by one for each windowful. Batch leaves room for as many interactive calls as were seen at once in the last minute,
    all but one.
    """

    __slots__ = ("_peak", "_peaked", "_quiet", "_slow", "interactive", "limit")

    def __init__(self) -> None:
        self.limit = _FIRST
        self.interactive = 0
        """Interactive calls in flight."""
        self._slow = False
        self._quiet = 0.0
        """Observations until the next decrease: one for each windowful."""
        self._peak = 0
        self._peaked = 0.0

    def open(self, lane: Lane, load: Load, uncached: int, pace: Pace, now: float) -> bool:
        """Whether one more call may be sent, of ``uncached`` tokens, given what the replica is at work on."""
        if not load.calls:
            return True
        if load.prefill and (load.prefill + uncached) * pace.prefill > _QUEUE:
            return False
        room = self.limit - load.calls
        if lane == "batch":
            room -= max(0, min(self._reserve(now), self.limit - 1) - self.interactive)
        return room >= 1

    def sent(self, lane: Lane, now: float) -> None:
        """A call of ``lane`` is in flight."""
        if lane == "interactive":
            self.interactive += 1
            if self.interactive >= self._reserve(now):
                self._peak, self._peaked = self.interactive, now

    def ended(self, lane: Lane) -> None:
        """It is not any more."""
        if lane == "interactive":
            self.interactive -= 1

    def observe(self, seconds: float, alone: float, calls: int) -> None:
        """A first token took ``seconds`` where it would have taken ``alone``, with ``calls`` in flight."""
        self._quiet -= 1
        if seconds > _TOLERANCE * alone + _NOISE:
            if self._quiet <= 0 and calls > 1:
                self.limit = max(_LEAST, min(self.limit, calls) * _DECREASE)
                self._slow, self._quiet = True, self.limit
        elif calls >= _FULL * self.limit:
            self.limit = min(_MOST, self.limit + (1 / self.limit if self._slow else 1.0))

    def _reserve(self, now: float) -> int:
        return self._peak if now - self._peaked <= _FADING else self.interactive
