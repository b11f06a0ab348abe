"""A PostgreSQL of a test's own, on a port of its own, that can be killed and started."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

_PLACES = ("/usr/lib/postgresql", "/usr/local/bin", "/usr/bin")
_SETTINGS = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "1MB",
    "max_connections": "20",
}


class OwnPostgres:
    """Skips where PostgreSQL's programs are not installed. Leaving it leaves nothing running, and nothing behind."""

    def __init__(self) -> None:
        pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
        found = shutil.which("initdb") or next(
            (str(path) for place in _PLACES for path in sorted(Path(place).glob("*/bin/initdb"))), None
        )
        if found is None:
            pytest.skip("initdb is not installed, and this test stops and starts a PostgreSQL of its own")
        self._programs = Path(found).resolve().parent
        self._user = _user()
        self._folder = Path()
        self._place = contextlib.ExitStack()
        self._running: asyncio.subprocess.Process | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self._port}/postgres"

    async def make(self) -> None:
        """Make the empty database, in a folder that its user can reach, as pytest's cannot be."""
        self._folder = Path(self._place.enter_context(tempfile.TemporaryDirectory(prefix="headway-postgres-")))
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        made = await self._run(
            "initdb", "--auth", "trust", "--username", "tester", "--no-sync", "-D", str(self._folder)
        )
        assert await made.wait() == 0

    async def start(self) -> None:
        """It answers when this returns."""
        options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        self._running = await self._run("postgres", "-D", str(self._folder), "-p", str(self._port), *options)
        async with asyncio.timeout(30):
            while not await asyncio.to_thread(self._answers):
                assert self._running.returncode is None, "it did not start"
                await asyncio.sleep(0.02)

    async def stop(self, *, killed: bool = False) -> None:
        """It is gone when this returns; ``killed``: at once, as in a crash."""
        running, self._running = self._running, None
        if running is not None:
            running.send_signal(signal.SIGQUIT if killed else signal.SIGINT)
            await running.wait()

    async def __aenter__(self) -> Self:
        await self.make()
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(killed=True)
        self._place.close()

    def _answers(self) -> bool:
        psycopg = pytest.importorskip("psycopg")
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    async def _run(self, program: str, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._programs / program,
            *arguments,
            user=self._user,
            cwd=self._folder,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )


def _user() -> str | None:
    """Whom it runs as, which must not be root; ``None``: us."""
    if os.getuid():
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`")
