"""Servers and their tools, as a task's tools."""

import asyncio
import logging
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Self, assert_never

from headway.core.errors import BadInputError, MissingExtraError
from headway.policy.headers import TRACE_HEADER
from headway.runtime.mcp.server import McpCommand, McpEndpoint
from headway.runtime.run import Run
from headway.runtime.spans import trace_headers
from headway.runtime.tools import Purity, Tool, ToolResult

if TYPE_CHECKING:
    from mcp_types import Tool as Offered

    from headway.runtime.mcp.connection import Connection
    from headway.runtime.mcp.connections import Connections

_log = logging.getLogger(__name__)
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST: Final = 64
"""Characters of a tool's name, for models."""


class McpServers:
    """Servers, connected to for as long as this async context manager is open; nothing of theirs runs on after it.

    Args:
        servers: each with a name of its own.

    Raises:
        BadInputError: two have the same name.
    """

    def __init__(self, *servers: McpCommand | McpEndpoint) -> None:
        self._servers = servers
        self._pools: list[Connections] = []
        self._known: dict[tuple[str, str], tuple[Offered, Tool]] = {}
        for name in {server.name for server in servers}:
            if sum(server.name == name for server in servers) > 1:
                raise BadInputError(
                    f"Two servers are called {name!r}.", fix="Their tools are called by it: rename one."
                )

    async def __aenter__(self) -> Self:
        """Connect to all of them.

        Raises:
            MissingExtraError: the extra ``mcp`` is not installed.
            UpstreamError: a server cannot be reached or makes no sense.
            BadInputError: there is no such program.
        """
        try:
            from headway.runtime.mcp.connections import Connections  # noqa: PLC0415 - needs an optional package
        except ModuleNotFoundError as error:
            raise MissingExtraError("MCP servers", "mcp") from error
        self._pools = [Connections(server, _connecting(server)) for server in self._servers]
        started = await asyncio.gather(*(pool.start() for pool in self._pools), return_exceptions=True)
        for outcome in started:
            if isinstance(outcome, BaseException):
                await self.__aexit__()
                raise outcome
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all connections, and the programs that were started."""
        await asyncio.gather(*(pool.close() for pool in self._pools))
        self._pools = []

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the servers offer now; a tool that has not changed is the same object as before.

        A tool whose parameters are no object is left out, and of two that models could not tell apart the second; a
        warning says so.
        """
        tools: dict[str, Tool] = {}
        for pool in self._pools:
            for offered in pool.tools:
                if pool.server.only is None or offered.name in pool.server.only:
                    tool = self._adapted(pool, offered)
                    if tool is None or tools.setdefault(tool.name, tool) is not tool:
                        _log.warning("%s offers the tool %r, which cannot be used", pool.server.name, offered.name)
        return tuple(tools.values())

    def _adapted(self, pool: "Connections", offered: "Offered") -> Tool | None:
        key = (pool.server.name, offered.name)
        known = self._known.get(key)
        if known is not None and known[0] == offered:
            return known[1]
        if offered.input_schema.get("type") != "object":
            return None
        tool = _tool(pool, offered)
        self._known[key] = (offered, tool)
        return tool


def _connecting(server: McpCommand | McpEndpoint) -> "Callable[[], Connection]":
    from headway.runtime.mcp.connection import Connection  # noqa: PLC0415 - needs an optional package
    from headway.runtime.mcp.endpoint import ServerEndpoint  # noqa: PLC0415 - as above
    from headway.runtime.mcp.process import ServerProcess  # noqa: PLC0415 - as above

    match server:
        case McpCommand():
            return lambda: Connection(server, ServerProcess(server))
        case McpEndpoint():
            return lambda: Connection(server, ServerEndpoint(server))
        case _:
            assert_never(server)


def _tool(pool: "Connections", offered: "Offered") -> Tool:
    from headway.runtime.mcp.content import told  # noqa: PLC0415 - needs an optional package

    server, name = pool.server, offered.name
    purity: Purity = "pure" if name in server.pure else "reads" if name in server.reads else "acts"
    repeatable = purity != "acts" or name in server.idempotent

    async def body(run: Run, arguments: dict[str, Any]) -> ToolResult:
        meta = {"traceparent": trace_headers(run.id, run.span)[TRACE_HEADER]}
        return told(await pool.call(name, arguments, meta, repeatable=repeatable))

    return Tool(
        name=_callable(f"{server.name}__{name}"),
        description=offered.description or offered.title or "",
        parameters=offered.input_schema,
        body=body,
        purity=purity,
        idempotent=name in server.idempotent,
        timeout=server.timeout,
        concurrency=server.concurrency,
    )


def _callable(name: str) -> str:
    """The name as models may write it; a long one is cut, and stays one of its own."""
    fit = _UNFIT.sub("_", name)
    if len(fit) <= _LONGEST:
        return fit
    return f"{fit[: _LONGEST - 9]}_{blake2b(name.encode(), digest_size=4).hexdigest()}"
