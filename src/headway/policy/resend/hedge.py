"""Hedging: a call whose first token is late is sent to a second replica, and the first answer wins."""

from bisect import bisect_left, insort
from collections import deque
from typing import Final

from headway.policy.resend.budget import ResendBudget

_KEPT: Final = 200
_ENOUGH: Final = 20
_QUANTILE: Final = 0.95
_RISEN: Final = 2.0
"""A p95 that has doubled means load, and hedges would add to it."""
_SLOWLY: Final = 0.01
_KINDS: Final = 200
"""Kinds of calls whose delays are kept: callers choose the models' names, so there is no end of them."""


class Delays:
    """TTFT of one kind of calls, the last 200: what is late, and whether all are."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self._sorted: list[float] = []
        self._usual: float | None = None

    def observe(self, seconds: float) -> None:
        """A first token took ``seconds``."""
        if len(self._recent) == _KEPT:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
        self._recent.append(seconds)
        insort(self._sorted, seconds)
        late = self.late
        if late is not None:
            self._usual = late if self._usual is None else self._usual + _SLOWLY * (late - self._usual)

    @property
    def late(self) -> float | None:
        """Seconds after which a first token is late: the 95th percentile; ``None`` below 20 calls."""
        if len(self._sorted) < _ENOUGH:
            return None
        return self._sorted[int(_QUANTILE * (len(self._sorted) - 1))]

    @property
    def risen(self) -> bool:
        """Whether the 95th percentile itself is twice what it usually is."""
        late = self.late
        return late is not None and self._usual is not None and late > _RISEN * self._usual


class Hedger:
    """Rules of "The Tail at Scale" (Dean and Barroso 2013).

    A second send after the 95th percentile of TTFT of the same kind of calls, within a budget of a share of all calls,
    and not at all while the percentile itself has risen. The first token wins, the loser is cancelled.
    """

    def __init__(self, budget: ResendBudget) -> None:
        self._budget = budget
        self._delays: dict[str, Delays] = {}

    def after(self, kind: str) -> float | None:
        """Seconds to wait for the first token of a call of ``kind`` before asking `allows`; ``None``: for ever."""
        self._budget.called()
        delays = self._delays.get(kind)
        return None if delays is None or delays.risen else delays.late

    def allows(self, kind: str) -> bool:
        """Whether the second send may be made now; if so it is charged."""
        delays = self._delays.get(kind)
        return delays is not None and not delays.risen and self._budget.take()

    def observe(self, kind: str, seconds: float) -> None:
        """A first token of a call of ``kind`` took ``seconds``."""
        delays = self._delays.get(kind)
        if delays is None:
            if len(self._delays) >= _KINDS:
                del self._delays[next(iter(self._delays))]
            delays = self._delays[kind] = Delays()
        delays.observe(seconds)
