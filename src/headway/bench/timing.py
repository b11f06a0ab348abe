"""Waiting until a moment, finer than the loop's own timers do, which count in milliseconds."""

import asyncio
import ctypes
import os
import struct
import sys
from collections.abc import Callable
from typing import Final, Protocol

_MONOTONIC: Final = 1
_FLAGS: Final = os.O_NONBLOCK | os.O_CLOEXEC
_SPEC: Final = struct.Struct("@qqqq")
"""Interval and first expiry, seconds and nanoseconds each (Linux ``struct itimerspec``)."""
_NANO: Final = 1_000_000_000


class Waiter(Protocol):
    """Waits."""

    async def until(self, when: float) -> None:
        """Return at ``when``, seconds by the monotonic clock; at once when that is past."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class TimerFd:
    """Linux's timer that is read like a file: it counts in nanoseconds, and is late by as much as the loop is busy.

    Args:
        now: the monotonic clock in seconds.

    Raises:
        OSError: the system has none to give.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._file = int(self._libc.timerfd_create(_MONOTONIC, _FLAGS))
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._now = now

    async def until(self, when: float) -> None:
        """Return at ``when``."""
        left = when - self._now()
        if left <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()
        nanoseconds = max(1, int(left * _NANO))
        spec = _SPEC.pack(0, 0, nanoseconds // _NANO, nanoseconds % _NANO)
        if self._libc.timerfd_settime(self._file, 0, spec, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

        def read() -> None:
            os.read(self._file, 8)
            if not rung.done():
                rung.set_result(None)

        loop.add_reader(self._file, read)
        try:
            await rung
        finally:
            loop.remove_reader(self._file)

    def close(self) -> None:
        """Give it back."""
        os.close(self._file)


class LoopTimer:
    """The loop's own timers, where the system has no better ones.

    Args:
        now: the monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    async def until(self, when: float) -> None:
        """Return at ``when`` or up to a millisecond later."""
        await asyncio.sleep(max(0.0, when - self._now()))

    def close(self) -> None:
        """There is nothing to give back."""


def waiter(now: Callable[[], float]) -> Waiter:
    """The best that this system has."""
    return TimerFd(now) if sys.platform == "linux" else LoopTimer(now)
