"""A way to a server at a URL, over streamable HTTP: answers are held to their size, and a failure is of one request.

Left to itself, the package reads bodies of any size, and ends the whole connection when one request fails.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from headway.runtime.mcp.server import McpEndpoint

_CONNECT_SECONDS: Final = 10.0
_SESSION: Final = "mcp-session-id"
_ERRORS: Final = 400
_NOT_FOUND: Final = 404
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"


class ServerEndpoint:
    """A way to a server at a URL; one connection, which is a session where the server keeps those."""

    def __init__(self, server: McpEndpoint) -> None:
        self.gone = asyncio.Event()
        """Set when a request did not arrive, its answer broke off, or the server knows the session no more."""
        self.why = ""
        """Which of them; empty: none."""
        self._server = server
        self._mark = secrets.token_hex(8)

    def undone(self, data: object) -> bool:
        """Whether an error's data says that the request was not served, which only this end may say."""
        return data == self._mark

    def lost(self, request: httpx2.Request, why: str, *, undone: bool) -> httpx2.Response:
        """No further call should take it; the answer to one that did."""
        self.broke(why)
        return _failure(request, why, self._mark if undone else None)

    def broke(self, why: str) -> None:
        """No further call should take it."""
        self.why = why
        self.gone.set()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[TransportStreams]:
        """Be ready to send; a session is ended when this is left."""
        most = self._server.most_bytes
        client = httpx2.AsyncClient(
            transport=_Held(self, httpx2.AsyncHTTPTransport(), most),
            # A small body could be unpacked to a large one.
            headers={**self._server.headers, "accept-encoding": "identity"},
            timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
            trust_env=False,  # else a proxy would be asked, and not by way of the transport
        )
        async with (
            client,
            streamable_http_client(self._server.url, http_client=client, max_sse_event_size=most) as streams,
        ):
            yield streams


class _Held(httpx2.AsyncBaseTransport):
    """Makes of what goes wrong with a request an answer to it that says so, and holds bodies to their size."""

    def __init__(self, way: ServerEndpoint, inner: httpx2.AsyncBaseTransport, most: int) -> None:
        self._way = way
        self._inner = inner
        self._most = most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it."""
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            undone = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            return self._way.lost(request, f"It could not be reached: {_of(error)}.", undone=undone)
        if response.status_code == _NOT_FOUND and _SESSION in request.headers:
            await response.aclose()
            return self._way.lost(request, "It does not know the session any more.", undone=True)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        packed = response.headers.get("content-encoding", "identity") != "identity"
        refused = request.method == "POST" and response.status_code >= _ERRORS and kind != _JSON
        if packed or refused:
            await response.aclose()
            what = "packed its answer, which it was not asked to" if packed else f"answered {_status(response)}"
            return _failure(request, f"It {what}.")
        response.stream = _HeldBody(response.stream, None if kind == _EVENTS else self._most, self._way.broke)
        return response

    async def aclose(self) -> None:
        """Close its connections."""
        await self._inner.aclose()


class _HeldBody(httpx2.AsyncByteStream):
    """A body; of events each has its own limit, so that all of them have none."""

    def __init__(self, inner: object, most: int | None, broke: Callable[[str], None]) -> None:
        assert isinstance(inner, httpx2.AsyncByteStream)  # noqa: S101 - what an asynchronous transport gives
        self._inner = inner
        self._most = most
        self._broke = broke

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._most is not None and size > self._most:
                    raise httpx2.StreamError(f"it has more than {self._most:,} bytes")
                yield chunk
        except httpx2.TransportError as error:
            self._broke(f"Its answer broke off: {_of(error)}.")
            raise httpx2.StreamError(f"it broke off: {_of(error)}") from error

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._inner.aclose()


def _failure(request: httpx2.Request, what: str, data: str | None = None) -> httpx2.Response:
    """As a server says it of a request that it could not read; so it is taken as the answer to that one."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": INTERNAL_ERROR, "message": what, "data": data}}
    return httpx2.Response(502, json=body, request=request)


def _status(response: httpx2.Response) -> str:
    return f"{response.status_code} {response.reason_phrase}".rstrip()


def _of(error: httpx2.TransportError) -> str:
    return str(error) or type(error).__name__
