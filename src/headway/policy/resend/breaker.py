"""Circuit breaker: a replica that fails most calls is left alone for a while, then tried with one."""

from collections import deque
from typing import Final, Literal

State = Literal["closed", "open", "half_open"]

_WINDOW: Final = 30.0
LEAST: Final = 5
"""Calls within the window below which nothing is concluded."""
SHARE: Final = 0.5
REST: Final = 5.0
_LONGEST: Final = 120.0
_MOST: Final = 1_000


class Breaker:
    """Closed: all calls pass. Open: none does, for ``rest`` seconds. Half open: one does, and its outcome decides.

    It opens when at least ``share`` of the calls within 30 s failed, and there were ``least`` of them. Each time that
    the trial call fails, the rest doubles, up to two minutes. Calls that passed before it opened, or in spite of it,
    decide nothing any more.
    """

    __slots__ = ("_calls", "_failed", "_least", "_next_rest", "_opened", "_rest", "_share", "_trial", "opens", "state")

    def __init__(self, rest: float = REST, share: float = SHARE, least: int = LEAST) -> None:
        self.state: State = "closed"
        self.opens = 0
        """How often it has opened."""
        self._calls: deque[tuple[float, bool]] = deque()
        self._failed = 0
        self._rest = self._next_rest = rest
        self._share = share
        self._least = least
        self._opened = 0.0
        self._trial = False

    def allows(self, now: float) -> bool:
        """Whether a call may pass at ``now``; asking changes nothing but open to half open."""
        if self.state == "open" and now - self._opened >= self._next_rest:
            self.state, self._trial = "half_open", False
        return self.state == "closed" or (self.state == "half_open" and not self._trial)

    def sent(self) -> bool:
        """A call passes; whether it is the trial."""
        if self.state != "half_open" or self._trial:
            return False
        self._trial = True
        return True

    def ended(self, now: float, *, failed: bool, trial: bool = False) -> None:
        """A call came to its end; ``trial``: as `sent` said. Cancelled calls say nothing: see `cancelled`."""
        if trial:
            if failed:
                self._open(now, min(_LONGEST, 2 * self._next_rest))
            else:
                self._close()
            return
        if self.state != "closed":
            return
        self._calls.append((now, failed))
        self._failed += failed
        while now - self._calls[0][0] > _WINDOW or len(self._calls) > _MOST:
            self._failed -= self._calls.popleft()[1]
        if len(self._calls) >= self._least and self._failed >= self._share * len(self._calls):
            self._open(now, self._rest)

    def cancelled(self) -> None:
        """The trial was given up for no fault of the replica: another call may be one."""
        self._trial = False

    def retry_after(self, now: float) -> float:
        """Seconds until a call may pass."""
        return max(0.0, self._opened + self._next_rest - now) if self.state == "open" else 0.0

    def _open(self, now: float, rest: float) -> None:
        self.state, self._opened, self._next_rest = "open", now, rest
        self.opens += 1
        self._calls.clear()
        self._failed = 0

    def _close(self) -> None:
        self.state, self._next_rest = "closed", self._rest
        self._calls.clear()
        self._failed = 0
