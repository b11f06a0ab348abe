"""One thread for work that would hold up the event loop; when it has too much to do it takes no more."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


class Worker:
    """Does jobs in turn, off the event loop that gives them.

    Args:
        name: of the thread.
        limit: jobs taken and not yet done.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._limit = limit
        self._thread = ThreadPoolExecutor(1, name)
        self._closed = False
        self.pending = 0
        self.turned_away = 0
        """Jobs that were not taken."""

    def do(self, job: Callable[[], _T], then: Callable[[_T | Exception], None]) -> bool:
        """Have ``job`` done and ``then`` called with its result or exception, on this event loop, never at once.

        Returns:
            False: there is too much to do already, and it will not be done.
        """
        if self.pending >= self._limit or self._closed:
            self.turned_away += 1
            return False
        self.pending += 1
        loop = asyncio.get_running_loop()

        def told(outcome: _T | Exception) -> None:
            self.pending -= 1
            then(outcome)

        def done(future: "Future[_T]") -> None:
            if future.cancelled():
                return
            error = future.exception()
            if error is None or isinstance(error, Exception):
                loop.call_soon_threadsafe(told, future.result() if error is None else error)

        self._thread.submit(job).add_done_callback(done)
        return True

    async def close(self) -> None:
        """Drop what has not begun, and wait for what has."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
