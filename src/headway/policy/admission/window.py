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
_BATCH: Final = 0.1
"""Few, for every prompt of batch that is computed holds up all answers being written; more brought batch no more
either, as it pushed its own prefixes out of the cache."""


class Window:
    """Calls in flight at one replica: additive increase, multiplicative decrease, by the first token's delay.

    Until the first delay the window grows by one with each call that finds it full, as TCP's slow start; from then on
    by one for each windowful. In the minute after an interactive call batch takes no more than a tenth of it, at least
    one call, and begins only while no prompt is being computed.
    """

    __slots__ = ("_quiet", "_seen", "_slow", "interactive", "limit")

    def __init__(self) -> None:
        self.limit = _FIRST
        self.interactive = 0
        """Interactive calls in flight."""
        self._slow = False
        self._quiet = 0.0
        """Observations until the next decrease: one for each windowful."""
        self._seen = float("-inf")

    def open(self, lane: Lane, load: Load, uncached: int, pace: Pace, now: float) -> bool:
        """Whether one more call may be sent, of ``uncached`` tokens, given what the replica is at work on."""
        if not load.calls:
            return True
        if load.prefill and (load.prefill + uncached) * pace.prefill > _QUEUE:
            return False
        if self.limit - load.calls < 1:
            return False
        return lane == "interactive" or now - self._seen > _FADING or self._leaves(load)

    def _leaves(self, load: Load) -> bool:
        """Whether one more call of batch leaves interactive ones undisturbed, or nearly so."""
        batch = load.calls - self.interactive
        return not load.prefill and batch < max(1.0, _BATCH * self.limit)

    def sent(self, lane: Lane, now: float) -> None:
        """A call of ``lane`` is in flight."""
        if lane == "interactive":
            self.interactive += 1
            self._seen = now

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
