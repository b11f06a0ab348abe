"""The MCP server at work: over standard input and output, or over streamable HTTP on loopback."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from typing import Final, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.app.loopback import LoopbackServer, listening
from headway.app.mcp.answers import Sources
from headway.app.mcp.server import made
from headway.core.errors import BadInputError
from headway.gateway.hosts import is_at_home, is_foreign
from headway.runtime.mcp.lines import Lines

_CHUNK: Final = 1 << 16
_LONGEST: Final = 1 << 22
_NO_NAMES: Final = frozenset[str]()


async def over_stdio(sources: Sources) -> None:
    """Serve whoever started this process, until its standard input ends.

    Raises:
        BadInputError: this process was started without a standard input or output.
    """
    if sys.stdin is None or sys.stdout is None:  # so they are when closed
        raise BadInputError(
            "Standard input or output is closed.", fix="Leave both open, or serve over HTTP with --port."
        )
    server = made(sources)
    lines = cast("anyio.AsyncFile[str]", _Input(sys.stdin.fileno()))
    try:
        async with stdio_server(stdin=lines) as (hear, tell):
            await server.run(hear, tell, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # whoever asked has gone, and left an answer unread


async def over_http(sources: Sources, port: int, announce: Callable[[str], None]) -> None:
    """Serve programs on this machine until cancelled.

    Args:
        sources: what may be asked about.
        port: on 127.0.0.1; 0: a free one.
        announce: told the URL when it is served.

    Raises:
        BadInputError: the port cannot be listened on.
    """
    app = made(sources).streamable_http_app(
        stateless_http=True,  # nothing is remembered between calls, so nothing is lost by a new start
        json_response=True,
        # Theirs knows exact names alone; ours is that of the gateway.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    fix = "Choose another --port, or 0 for a free one."
    listener = listening(port, f"127.0.0.1:{port} cannot be listened on", fix)
    server = LoopbackServer(_AtHome(app), lifespan="on")
    serving = asyncio.create_task(server.serve([listener]), name="headway mcp")
    try:
        await asyncio.wait({serving, up := asyncio.ensure_future(server.up.wait())}, return_when="FIRST_COMPLETED")
        up.cancel()
        announce(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving


class _Input:
    """Lines of standard input. Read by the event loop: a thread that waits for more could not be told to stop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        lines = Lines(_LONGEST, sys.maxsize)
        while True:
            await self._readable()
            data = os.read(self._descriptor, _CHUNK)
            if not data:
                return
            for line in lines.feed(data):
                yield line.decode(errors="replace") if isinstance(line, bytes) else f"{line.size} bytes"

    async def _readable(self) -> None:
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._descriptor, readable.set)
        except PermissionError:  # a file, which lets nobody wait
            return
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._descriptor)


class _AtHome:
    """Refuses what a page on the web has a browser ask: see `headway.gateway.hosts`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            if not is_at_home(host.encode("latin-1"), _NO_NAMES):
                await PlainTextResponse("This is only called by an address of this machine.", 403)(scope, receive, send)
                return
            if origin is not None and is_foreign(origin.encode("latin-1"), _NO_NAMES):
                await PlainTextResponse("No web page may call this.", 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)
