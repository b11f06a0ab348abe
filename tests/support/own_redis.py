"""A Redis of a test's own, on a port of its own, that can be stopped and started."""

import asyncio
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest


class OwnRedis:
    """Skips where ``redis-server`` is not installed. Leaving it leaves nothing running.

    Args:
        folder: where it writes down all that it is told, before it says so, to know it again when it is started again;
            ``None``: it forgets.
    """

    def __init__(self, folder: Path | None = None) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed, and this test stops and starts one of its own")
        pytest.importorskip("redis", reason="the extra `redis` is not installed")
        self._program = program
        self._folder = folder
        self._running: asyncio.subprocess.Process | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    async def start(self) -> None:
        """It answers when this returns."""
        kept = ("no",) if self._folder is None else ("yes", "--appendfsync", "always", "--dir", str(self._folder))
        options = ("--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", *kept)
        self._running = await asyncio.create_subprocess_exec(self._program, *options, stdout=asyncio.subprocess.DEVNULL)
        async with asyncio.timeout(10):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                except OSError:
                    await asyncio.sleep(0.01)
                else:
                    writer.close()
                    return

    async def stop(self, *, killed: bool = False) -> None:
        """It is gone when this returns; ``killed``: without a chance to end in good order."""
        running, self._running = self._running, None
        if running is not None:
            running.kill() if killed else running.terminate()
            await running.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
