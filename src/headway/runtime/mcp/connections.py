"""The connections to one server: shared by all calls, opened when needed, after a growing pause when they are lost."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from mcp_types import CallToolResult, Tool

from headway.core.errors import BadInputError, HeadwayError, UpstreamError
from headway.runtime.mcp.connection import Connection, LostError
from headway.runtime.mcp.server import McpServer

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
_DOUBLINGS: Final = 10
"""After which the pause is the longest anyhow."""


class Connections:
    """Those to one server.

    Args:
        server: to whom.
        connect: makes one, which is not open yet.
    """

    def __init__(self, server: McpServer, connect: Callable[[], Connection]) -> None:
        self.server = server
        self._connect = connect
        self._open: list[Connection] = []
        self._ending: list[Connection] = []
        self._opening: asyncio.Task[Connection] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._closed = False
        self._tools: tuple[Tool, ...] = ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the server offers, as far as is known."""
        if usable := [connection for connection in self._open if connection.usable]:
            self._tools = usable[-1].tools
        return self._tools

    async def start(self) -> None:
        """Have a connection; raises as `call`."""
        await self._least_busy()

    async def close(self) -> None:
        """End all of them; there will be no others."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        await asyncio.gather(*(connection.close() for connection in (*self._open, *self._ending)))

    async def call(
        self, tool: str, arguments: dict[str, Any], meta: dict[str, Any], *, repeatable: bool
    ) -> CallToolResult:
        """Call a tool; once more over another connection if the first was lost, and it undone or ``repeatable``.

        Raises:
            UpstreamError: no connection could be had, it was lost, or the server refused or made no sense.
            BadInputError: there is no such program, or they were closed.
        """
        connection = await self._least_busy()
        try:
            result = await connection.call(tool, arguments, meta)
        except LostError as error:
            self._sort_out()
            if not (repeatable or error.undone):
                raise UpstreamError(f"{error.what} Whether the call was done is not known.") from error
            connection = await self._least_busy()
            try:
                result = await connection.call(tool, arguments, meta)
            except LostError:
                self._sort_out()
                raise
        self._failures = 0
        return result

    async def _least_busy(self) -> Connection:
        if self._closed:
            raise BadInputError(
                f"The connections to {self.server.name} were closed.",
                fix="Use its tools inside `async with McpServers`.",
            )
        self._sort_out()
        best = min(self._open, key=lambda connection: connection.calls, default=None)
        if best is not None and (best.calls == 0 or len(self._open) >= self.server.connections):
            return best
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._another())
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        # All who have none wait for the same one, and hear of the same failure.
        return await asyncio.shield(self._opening) if best is None else best

    async def _another(self) -> Connection:
        await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
        connection = self._connect()
        try:
            await connection.open()
        except HeadwayError:
            self._failed()
            raise
        self._open.append(connection)
        return connection

    def _sort_out(self) -> None:
        """Let go of connections that were lost; each is one failure, however many calls it had."""
        lost = [connection for connection in self._open if not connection.usable]
        self._open = [connection for connection in self._open if connection.usable]
        self._ending = [connection for connection in (*self._ending, *lost) if not connection.ended]
        for _ in lost:
            self._failed()

    def _failed(self) -> None:
        pause = min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
        self._failures = min(self._failures + 1, _DOUBLINGS)
        self._not_before = asyncio.get_running_loop().time() + pause
