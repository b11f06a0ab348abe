"""`headway serve` as a child process: started, waited for, watched, and never left behind."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from headway.app.service import Ready
from headway.core.errors import EngineError

T = TypeVar("T")

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 10.0
LAST_WORDS: Final = 5
"""Lines of its log that are shown when it fails."""

PROGRAM: Final = (
    f"from {__name__} import end_with_parent; end_with_parent(); from headway.app.cli.main import main; main()"
)
"""What the child runs: the `headway` command, wherever its script is installed. ``-P`` keeps the folder that the demo
is started in out of its imports."""


class ServeProcess:
    """A gateway in a process of its own; use it as an async context manager.

    The child ends with this process however that ends: its standard input is a pipe that closes then. Ctrl-C is not
    passed on by the terminal, since it is this process that ends it.

    Args:
        options: of ``headway serve``; ``--json`` is added.
        log: what the child says on standard error goes to this file.
    """

    def __init__(self, options: Sequence[str], log: Path) -> None:
        self._options = options
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", PROGRAM, "serve", *self._options, "--json"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
        if process.stdin is not None:
            process.stdin.close()

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._running.pid

    async def ready(self) -> Ready:
        """Wait until it serves.

        Raises:
            EngineError: it ended first, said something else, or took longer than `START_SECONDS`.
        """
        output = self._running.stdout
        line = b"" if output is None else await self._within(output.readline())
        if not line:
            await self._running.wait()
            raise self._ended("before it was ready")
        try:
            return msgspec.json.decode(line, type=Ready)
        except msgspec.DecodeError as error:
            raise EngineError(f"The gateway announced itself with {line[:80]!r}.", fix=f"See {self._log}.") from error

    async def guard(self, work: Awaitable[T]) -> T:
        """Do ``work``, and stop at once if the gateway ends meanwhile.

        Raises:
            EngineError: the gateway ended; the message says how.
        """
        working, watching = asyncio.ensure_future(work), asyncio.ensure_future(self._running.wait())
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                raise self._ended("in the middle of the demo")
            return await working
        finally:
            watching.cancel()
            working.cancel()
            await asyncio.wait({working, watching})

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("ServeProcess is a context manager: enter it first")
        return self._process

    async def _within(self, work: Awaitable[bytes]) -> bytes:
        try:
            return await asyncio.wait_for(work, START_SECONDS)
        except TimeoutError as error:
            raise EngineError(
                f"The gateway was not ready within {START_SECONDS:g} s.", fix=f"Its log is in {self._log}."
            ) from error

    def _ended(self, when: str) -> EngineError:
        status = self._running.returncode or 0
        how = f"with status {status}" if status >= 0 else f"by signal {-status} ({signal.Signals(-status).name})"
        words = self._log.read_text(errors="replace").splitlines()[-LAST_WORDS:]
        said = "\n  ".join(["", *words]) if words else " nothing"
        return EngineError(
            f"The gateway ended {when}, {how}; its engines end with it. It said last:{said}",
            fix=f"Its whole log is in {self._log}. Start the demo again with: headway demo",
        )


def end_with_parent() -> None:
    """Have this process told to stop when the pipe from its parent closes; for the child."""

    def watch() -> None:
        os.read(0, 1)  # not sys.stdin, whose lock would be held when the interpreter ends
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
