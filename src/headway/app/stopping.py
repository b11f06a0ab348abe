"""How what serves is told to stop, once to let calls end, again to end them at once; and to read its file again."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals(first: asyncio.Event, second: asyncio.Event) -> Generator[list[signal.Signals]]:
    """Within, SIGTERM and SIGINT do no more than set an event: the first signal ``first``, all others ``second``.

    Gives the list of those that came.
    """
    loop = asyncio.get_running_loop()
    told: list[signal.Signals] = []

    def arrived(number: signal.Signals) -> None:
        told.append(number)
        (second if first.is_set() else first).set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, arrived, number)
    try:
        yield told
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def on_hangup(do: Callable[[], None]) -> Generator[None]:
    """Within, SIGHUP does no more than this."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, do)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do ``work``, or break it off when ``event`` is set first; whether it was done."""
    waiting, working = asyncio.ensure_future(event.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait({waiting, working}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        broken_off = working.cancel()
        await asyncio.wait({waiting, working})
    if not broken_off:
        working.result()
    return not broken_off
