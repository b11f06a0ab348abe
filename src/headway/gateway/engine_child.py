"""The parent's end of one engine process: started, asked how it is, ended, and what it said last."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import msgspec

from headway.gateway.engine_process import READY, Launch

_COMMAND = (sys.executable, "-m", "headway.gateway.engine_process")
_STDIN, _STDOUT = 0, 1
_TAIL_BYTES, _TAIL_LINES = 8192, 8


class EngineChild(asyncio.SubprocessProtocol):
    """One engine process. `running` makes it and sees to its end."""

    pid: int
    ending: str | None = None
    """How it ended, to follow its name: ``was killed by SIGKILL``; ``None`` while it lives."""

    def __init__(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._port = port
        self._ready: asyncio.Future[bool] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Standard output says that it serves; of the rest only the end is kept."""
        if fd != _STDOUT:
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
        elif data == READY and not self._ready.done():
            self._ready.set_result(True)

    def process_exited(self) -> None:
        """Let go of its input, so that the transport closes."""
        if stdin := self._transport.get_pipe_transport(_STDIN):
            stdin.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It has ended and all that it wrote has been read."""
        self.ending = self.ending or _ending(self._transport.get_returncode())
        if not self._ready.done():
            self._ready.set_result(False)
        self._transport.close()
        self._ended.set_result(None)

    async def ready(self, seconds: float) -> bool:
        """Whether it serves; false when it ended before it did, or took longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._ready)
        except TimeoutError:
            return False

    async def until_down(self, probe_seconds: float, misses: int) -> str:
        """Wait until it has ended, or does not answer ``misses`` probes in a row and is killed for it; say which."""
        missed = 0
        while not await self._ends_within(probe_seconds):
            missed = 0 if await _is_well(self._port, probe_seconds) else missed + 1
            if missed >= misses and self.ending is None:
                self.ending = f"left {misses} health probes unanswered and was killed"
                await self.end(signal.SIGKILL)
        return self.ending or ""

    async def end(self, signum: int, grace: float = 0.0) -> None:
        """Send ``signum``; when it lives on after ``grace`` seconds, kill it. Returns when it is gone."""
        if self._ended.done():
            return
        self._transport.send_signal(signum)
        if not await self._ends_within(grace):
            self._transport.kill()
            await self._ended

    def last_words(self) -> str:
        """The last lines that it wrote to standard error, indented."""
        lines = [line for line in self._tail.decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:]) or "  (none)"

    async def _ends_within(self, seconds: float) -> bool:
        await asyncio.wait([self._ended], timeout=seconds)
        return self._ended.done()


@asynccontextmanager
async def running(launch: Launch, stop_seconds: float) -> AsyncGenerator[EngineChild]:
    """An engine process that is gone on leaving: asked with SIGTERM, and killed ``stop_seconds`` later."""
    # In a session of its own: Ctrl-C in the terminal is for the gateway, which drains before it stops its engines.
    transport, child = await asyncio.get_running_loop().subprocess_exec(
        lambda: EngineChild(launch.port), *_COMMAND, start_new_session=True
    )
    try:
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(_STDIN))
        stdin.write(msgspec.json.encode(launch) + b"\n")
        yield child
    finally:
        await child.end(signal.SIGTERM, stop_seconds)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"


async def _is_well(port: int, seconds: float) -> bool:
    """Whether ``GET /health`` is answered with 200 within ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
