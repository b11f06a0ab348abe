"""One coarse look at all deadlines instead of a timer per request, which would cost more than the request."""

import asyncio
import math
from typing import Final, Protocol

from headway.core.clock import Clock
from headway.core.config import Limits

NEVER: Final = math.inf
_FINEST: Final = 0.01
_COARSEST: Final = 1.0


class Expiring(Protocol):
    """Something that must not last for ever."""

    deadline: float
    """Epoch seconds by the gateway's clock; `NEVER` when nothing is awaited."""

    def expire(self, now: float) -> None:
        """The deadline has passed: end it, or set a new one."""
        ...


class Deadlines:
    """Everything with a deadline, looked over at a steady beat; so a deadline is kept up to one beat late.

    Args:
        clock: the axis that deadlines are on.
        beat: seconds of the event loop between two looks.
    """

    def __init__(self, clock: Clock, beat: float) -> None:
        self._clock = clock
        self._beat = beat
        self._members: set[Expiring] = set()
        self.recent = clock.now()
        """When it was last looked: near enough to set a deadline from, without asking the clock for each."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, member: Expiring) -> None:
        """Watch ``member`` until it is discarded."""
        self._members.add(member)

    def discard(self, member: Expiring) -> None:
        """Watch it no longer."""
        self._members.discard(member)

    def start(self) -> None:
        """Begin to look, on the running event loop."""
        loop = asyncio.get_running_loop()

        def look() -> None:
            self._timer = loop.call_later(self._beat, look)
            self.sweep()

        self._timer = loop.call_later(self._beat, look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sweep(self) -> None:
        """Expire all that are due."""
        now = self.recent = self._clock.now()
        for member in [member for member in self._members if member.deadline < now]:
            member.expire(now)


def beat_for(limits: Limits) -> float:
    """A quarter of the shortest limit, between 10 ms and 1 s."""
    shortest = min(
        limits.header_seconds,
        limits.body_seconds,
        limits.idle_seconds,
        limits.first_byte_seconds,
        limits.stall_seconds,
    )
    return min(_COARSEST, max(_FINEST, shortest / 4))
