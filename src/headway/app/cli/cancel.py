"""Work that a signal can stop: Ctrl-C and SIGTERM both cancel it and let it clean up."""

import asyncio
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but either signal cancels ``work``, once; off the main thread, which gets none, exactly it.

    Raises:
        SystemExit: it was told to stop; the status is 128 + the signal's number. All of ``work`` has ended then.
    """
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    told: list[int] = []
    try:
        return asyncio.run(_until_told(work, told))
    except asyncio.CancelledError:
        if told:
            sys.exit(128 + told[0])
        raise


async def _until_told(work: Coroutine[Any, Any, T], told: list[int]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def arrived(number: int) -> None:
        if not told:  # a second one must not break off the cleaning up
            task.cancel()
        told.append(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, arrived, number)
    try:
        return await task
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
