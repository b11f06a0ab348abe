"""Time as the rest of Headway sees it: one monotonic axis, anchored once to the wall clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now(self) -> float:
        """Seconds since the Unix epoch; differences between two readings are never negative."""
        ...


class SystemClock:
    """The monotonic clock, shifted once so that its readings look like epoch seconds.

    A step of the wall clock (NTP, a suspended laptop) moves neither durations nor order; the price is that
    absolute times drift from the wall by whatever the wall was corrected since the process started.
    """

    def __init__(self) -> None:
        self._anchor = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the Unix epoch, by the monotonic clock."""
        return self._anchor + time.monotonic()


class VirtualClock:
    """A clock that moves only when told to; for tests and simulation."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds on the virtual axis."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward by ``seconds``.

        Raises:
            ValueError: ``seconds`` is negative; time does not run backwards.
        """
        if seconds < 0:
            msg = f"advance() takes seconds >= 0, got {seconds}"
            raise ValueError(msg)
        self._now += seconds
