"""One worker's process as the one sees it that looks after it: started, spoken to, started again, ended."""

import asyncio
import logging
import os
import pickle
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final, Protocol

from headway.app.service import Service
from headway.app.workers import words
from headway.core.errors import HeadwayError, WorkerError
from headway.gateway.line import Line

_LOG: Final = logging.getLogger(__name__)
_MODULE: Final = "headway.app.workers.child"
_PAUSES: Final = (0.1, 1.0, 5.0, 30.0)
"""Seconds until one that has died is started again; the last one for ever."""
_WELL_SECONDS: Final = 60.0
"""One that has lived so long was well: the next pause is the first again."""
_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 20.0
"""What a worker may take beyond its calls, to write what is still to be written, before it is killed."""


class Supervisor(Protocol):
    """Who looks after it."""

    @property
    def service(self) -> Service:
        """What is served now."""
        ...

    @property
    def seed(self) -> int:
        """Of the hashes of all workers, so that they can compare digests."""
        ...

    def task(self) -> bytes:
        """What it is to serve, and whence."""
        ...

    def connect(self, line: Line, worker: "WorkerProcess") -> None:
        """Say what it may say on its line."""
        ...

    def came(self, worker: "WorkerProcess") -> None:
        """It serves."""
        ...

    def gone(self, worker: "WorkerProcess") -> None:
        """It has ended."""
        ...


class WorkerProcess:
    """A worker, from `start` to `stop`."""

    def __init__(self, number: int, supervisor: Supervisor) -> None:
        self.number = number
        self.page = b""
        """Its figures, as it told them last."""
        self.ends = 0
        """How often it ended without being told to."""
        self.pid: int | None = None
        self._supervisor = supervisor
        self._line: Line | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._killer: asyncio.TimerHandle | None = None

    @property
    def up(self) -> bool:
        """Whether it serves."""
        return self._line is not None

    async def start(self) -> None:
        """Have it serve, and see to it that it goes on.

        Raises:
            HeadwayError: it cannot serve.
        """
        await self._begin()
        self._life = asyncio.get_running_loop().create_task(self._live(), name=f"headway worker {self.number}")

    async def drain(self, seconds: float) -> None:
        """Have it end once its calls have, or after ``seconds``; gone when this returns."""
        self._stopping.set()
        self.tell(words.DRAIN, words.encode(seconds))
        self._kill_after(seconds + _END_SECONDS)
        if self._life is not None:
            await asyncio.shield(self._life)

    async def stop(self) -> None:
        """End it without waiting for its calls; gone when this returns."""
        self._stopping.set()
        self.tell(words.DRAIN, words.encode(0.0))
        self.tell(words.AT_ONCE, b"")
        self._kill_after(_END_SECONDS)
        if self._life is not None:
            await self._life
        elif self._process is not None:
            await self._ended(self._process)
        if self._killer is not None:
            self._killer.cancel()

    def tell(self, topic: str, payload: bytes) -> None:
        """Tell it something, if it is up."""
        if self._line is not None:
            self._line.tell(topic, payload)

    async def change(self) -> None:
        """Have it serve what is served now.

        Raises:
            HeadwayError: it cannot.
        """
        if self._line is not None:
            await self._line.ask(words.CHANGE, pickle.dumps(self._supervisor.service), _START_SECONDS)

    async def asked(self, topic: str, seconds: float, payload: bytes = b"") -> bytes | None:
        """What it answers; ``None``: it is not up, or did not in time."""
        if self._line is None:
            return None
        try:
            return await self._line.ask(topic, payload, seconds)
        except WorkerError:
            return None

    async def _begin(self) -> None:
        mine, its = socket.socketpair()
        with its:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    _MODULE,
                    str(its.fileno()),
                    pass_fds=[its.fileno()],
                    stdin=asyncio.subprocess.DEVNULL,
                    env={**os.environ, "PYTHONHASHSEED": str(self._supervisor.seed)},
                )
            except OSError as error:
                mine.close()
                raise WorkerError(f"Worker {self.number} cannot be started: {error.strerror}.") from error
        self.pid = self._process.pid
        line = Line()
        self._supervisor.connect(line, self)
        await line.open(mine)
        served = self._supervisor.service
        try:
            await line.ask(words.BEGIN, self._supervisor.task(), _START_SECONDS)
            while served is not self._supervisor.service:  # it was changed meanwhile
                served = self._supervisor.service
                await line.ask(words.CHANGE, pickle.dumps(served), _START_SECONDS)
        except BaseException:
            await line.close()
            await self._ended(self._process)
            raise
        self._line = line
        self._supervisor.came(self)
        _LOG.info("worker %d serves (process %d)", self.number, self.pid, extra={"event": "worker_up"})

    async def _live(self) -> None:
        failed = 0
        while True:
            since = time.monotonic()
            if self._process is not None:
                await self._over(self._process)
            if self._stopping.is_set():
                return
            self.ends += 1
            failed = 0 if time.monotonic() - since > _WELL_SECONDS else failed
            while not self._stopping.is_set():
                pause = _PAUSES[min(failed, len(_PAUSES) - 1)]
                failed += 1
                _LOG.warning("worker %d is started again in %g s", self.number, pause, extra={"event": "worker_again"})
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)
                if self._stopping.is_set():
                    return
                try:
                    await self._begin()
                except HeadwayError as error:
                    _LOG.error("worker %d: %s", self.number, error, extra={"event": "worker_failed"})
                else:
                    break

    async def _over(self, process: asyncio.subprocess.Process) -> None:
        """Until the process has ended."""
        status = await process.wait()
        line, self._line = self._line, None
        if line is not None:
            await line.close()
        self._supervisor.gone(self)
        if not self._stopping.is_set() or status:
            _LOG.error(
                "worker %d (process %d) %s; calls under way on it are lost",
                self.number,
                process.pid,
                _how(status),
                extra={"event": "worker_down"},
            )

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        """One that never served is ended."""
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def _kill_after(self, seconds: float) -> None:
        if self._killer is not None:
            self._killer.cancel()
        self._killer = asyncio.get_running_loop().call_later(seconds, self._kill)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            _LOG.error("worker %d does not end and is killed", self.number, extra={"event": "worker_killed"})
            self._process.kill()


def _how(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"
