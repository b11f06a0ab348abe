"""A server as a process of ours: started, spoken to over its standard input and output, ended with all that it started.

The package's own way reads lines of any length and leaves a server alone whose starter is killed, so this is another.
"""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from headway.core.errors import BadInputError, UpstreamError
from headway.runtime.mcp import guard
from headway.runtime.mcp.lines import Lines, Overlong
from headway.runtime.mcp.server import McpCommand

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

_GUARD: Final = str(Path(guard.__file__))
_CHUNK: Final = 1 << 16
_FLOOD: Final = 1 << 28
_PATIENCE: Final = 1.0
"""Seconds that a server has to end by itself when its input has ended, and again when it was asked to."""
_TAIL: Final = 2000
"""Bytes that are kept of what it says on standard error, for errors."""


class ServerProcess:
    """A way to a server that is a command; one connection."""

    def __init__(self, server: McpCommand) -> None:
        self.gone = asyncio.Event()
        """Set when it has ended, or can no longer be understood."""
        self._server = server
        self._said = b""
        self._silent = asyncio.Event()
        self._broken = ""

    @property
    def why(self) -> str:
        """What it was given up for, or said last on standard error; empty when it said nothing."""
        said = " ".join(self._said.decode(errors="replace").split())
        return self._broken or (f"It said last: {said}" if said else "")

    def undone(self, data: object) -> bool:  # noqa: ARG002 - other ways know
        """Whether an error's data says that a request was not served: of what was written, nobody knows."""
        return False

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Streams]:
        """Start it; it has ended when this is left, however it is left.

        Raises:
            BadInputError: there is no such program, or it cannot be started.
        """
        process, lifeline = await self._start()
        incoming, hear = anyio.create_memory_object_stream[Incoming](0)
        tell, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as work, incoming, hear, tell, outgoing:
                work.start_soon(self._hear, process, incoming)
                work.start_soon(self._listen, process)
                work.start_soon(self._tell, process, outgoing)
                try:
                    yield hear, tell
                finally:
                    work.cancel_scope.cancel()
        finally:
            os.close(lifeline)
            with anyio.CancelScope(shield=True):
                await _end(process)

    async def _start(self) -> tuple[Process, int]:
        env = get_default_environment() | dict(self._server.env)
        program, *arguments = self._server.command
        found = shutil.which(program, path=env.get("PATH"))
        if found is None:
            raise BadInputError(
                f"{self._server.name}: there is no program {program!r}.", fix="Install it, or give its whole path."
            )
        theirs, ours = os.pipe()
        command = [sys.executable, "-I", "-S", _GUARD, str(theirs), str(_PATIENCE), found, *arguments]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                pass_fds=(theirs,),
                env=env,
                cwd=self._server.folder,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(ours)
            if isinstance(error, OSError):
                raise BadInputError(f"{self._server.name} cannot be started: {error}.") from error
            raise
        finally:
            os.close(theirs)
        return process, ours

    async def _hear(self, process: Process, incoming: MemoryObjectSendStream[Incoming]) -> None:
        assert process.stdout is not None  # noqa: S101 - opened with pipes
        lines = Lines(self._server.most_bytes, _FLOOD)
        try:
            while data := await process.stdout.read(_CHUNK):
                for line in lines.feed(data):
                    if (message := self._message(line)) is not None:
                        await incoming.send(message)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._silent.wait(), _PATIENCE)  # what is said of its end comes by another pipe
        except UpstreamError as error:
            self._broken = error.what
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the connection is being closed
        finally:
            incoming.close()
            self.gone.set()

    def _message(self, line: bytes | Overlong) -> Incoming | None:
        if isinstance(line, bytes):
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError as error:
                return error
        if not line.is_answer:
            return None
        what = f"It answered with {line.size:,} bytes, more than {self._server.most_bytes:,}."
        if line.answers is None:
            raise UpstreamError(what)  # one of those who wait would wait in vain, and it is not known which
        error = ErrorData(code=INTERNAL_ERROR, message=what)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.answers, error=error))

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None  # noqa: S101 - opened with pipes
        while data := await process.stderr.read(_CHUNK):
            self._said = (self._said + data)[-_TAIL:]
        self._silent.set()

    async def _tell(self, process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert process.stdin is not None  # noqa: S101 - opened with pipes
        with suppress(ConnectionError, anyio.ClosedResourceError):  # that it has ended is noticed by its output
            async for message in outgoing:
                process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()


async def _end(process: Process) -> None:
    """The guard, told already, ends the server and itself; should it not, everything in its group is killed."""
    assert process.stdin is not None  # noqa: S101 - opened with pipes
    assert process.stdout is not None  # noqa: S101 - as above
    assert process.stderr is not None  # noqa: S101 - as above
    process.stdin.close()
    ended = asyncio.gather(_drain(process.stdout), _drain(process.stderr), process.wait())
    try:
        await asyncio.wait_for(ended, 3 * _PATIENCE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, SIGKILL)
        # Something that left the group may hold the pipes for ever; they are let go of.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio shows it nowhere


async def _drain(pipe: asyncio.StreamReader) -> None:
    """A server that is stuck in writing could not end."""
    while await pipe.read(_CHUNK):
        pass
