"""The observer's process as the gateway sees it: started, listened to, started again if it dies, and ended."""

import asyncio
import logging
import sys
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import structs

from headway.gateway.observer.watch import Told, Watch

_log = logging.getLogger(__name__)
_MODULE: Final = "headway.gateway.observer.child"
_LINE_BYTES: Final = 32 << 20
"""Of one piece of news: more than the largest page of metrics."""
_END_SECONDS: Final = 10.0
"""What it may take to end before it is killed."""
_PAUSES: Final = (1.0, 5.0, 30.0)
"""Seconds until it is started again, the last one for ever."""


class ObserverProcess:
    """One process beside the gateway, from `start` to `stop`. Whatever becomes of it, calls are served.

    Args:
        watch: what it is told.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._page = b""
        self._work: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self.pid: int | None = None
        """Of the process, while it runs."""

    def page(self) -> bytes:
        """Its part of the page of metrics, as it was told last."""
        return self._page

    def start(self) -> None:
        """Start it, and see to it that it runs."""
        self._work = asyncio.get_running_loop().create_task(self._run(), name="headway observer")

    async def stop(self) -> None:
        """Let it do what is left to do, and end it; gone when this returns."""
        self._stopping.set()
        if self._work is not None:
            await self._work
            self._work = None

    async def _run(self) -> None:
        failed = 0
        while not self._stopping.is_set():
            status = await self._one_life()
            if self._stopping.is_set():
                return
            pause = _PAUSES[min(failed, len(_PAUSES) - 1)]
            failed += 1
            _log.error(
                "the observer ended with status %s; started again in %g s",
                status,
                pause,
                extra={"event": "observer_ended"},
            )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _one_life(self) -> int | str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", _MODULE, stdin=pipe, stdout=pipe, limit=_LINE_BYTES
            )
        except OSError as error:
            return f"{error.strerror}, it could not be started"
        self.pid = process.pid
        stopped = asyncio.get_running_loop().create_task(self._stopping.wait())
        listened = asyncio.get_running_loop().create_task(self._listen(process))
        try:
            await asyncio.wait({stopped, listened}, return_when=asyncio.FIRST_COMPLETED)
            if process.stdin is not None:
                process.stdin.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(listened), _END_SECONDS)
        finally:
            stopped.cancel()
            listened.cancel()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            self.pid = None
            status = await process.wait()
        return status

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Until it ends."""
        if process.stdin is None or process.stdout is None:
            return
        with suppress(ConnectionError):
            process.stdin.write(msgspec.json.encode(self._watch) + b"\n")
            await process.stdin.drain()
        while line := await process.stdout.readline():
            told = msgspec.json.decode(line, type=Told)
            self._page = told.page.encode(errors="replace")
            self._watch = structs.replace(self._watch, begin=told.place)
        await process.wait()
