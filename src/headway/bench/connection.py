"""The client: bytes out, bytes in with the time of each read. Nothing else is done while a load runs."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import httptools
from msgspec import Struct

from headway.bench.endpoint import Endpoint


class Received(Struct):
    """One request and all that came back. Epoch seconds on the clock of the run."""

    asked: float
    """When the client turned to it."""
    sent: float | None = None
    """When its bytes were handed to the socket; ``None``: no connection was had."""
    ended: float = 0.0
    status: int | None = None
    reads: list[tuple[float, bytes]] = []
    """Pieces of the body, and when each was read."""
    error: str | None = None
    """What kept the answer from coming to its end, as a short stable word."""


class Client:
    """Connections to one endpoint, kept alive; as many as there are calls under way.

    Args:
        endpoint: where to.
        now: the clock.
        patience: seconds that a call may take from being asked to its end.
    """

    def __init__(self, endpoint: Endpoint, now: Callable[[], float], patience: float) -> None:
        self.endpoint = endpoint
        self.opened = 0
        """Connections made."""
        self._now = now
        self._patience = patience
        self._tls = ssl.create_default_context() if endpoint.tls else None
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._gone = asyncio.Event()
        self._gone.set()

    async def ask(self, request: bytes) -> Received:
        """Send it and wait for the end of the answer, however that comes about.

        A connection that the other side had closed while it was idle is replaced once; that is no failure.
        """
        received = Received(self._now())
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    fresh = not self._idle
                    connection = await self._connect() if fresh else self._idle.pop()
                    await connection.ask(request, received)
                    if fresh or received.error != "closed" or received.status is not None:
                        break
                    received.error = None
        except TimeoutError:
            received.error = "timeout"
        except OSError as error:
            received.error = "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"
        finally:
            if connection is not None and connection.reusable:
                self._idle.append(connection)
            elif connection is not None:
                connection.abort()
            received.ended = self._now()
        return received

    async def close(self) -> None:
        """Drop all connections."""
        for connection in tuple(self._all):
            connection.abort()
        self._idle.clear()
        await self._gone.wait()

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        place = (self.endpoint.host, self.endpoint.port)
        _, connection = await loop.create_connection(lambda: _Connection(self._now, self._lost), *place, ssl=self._tls)
        self._all.add(connection)
        self._gone.clear()
        self.opened += 1
        return connection

    def _lost(self, connection: "_Connection") -> None:
        self._all.discard(connection)
        if not self._all:
            self._gone.set()
        with suppress(ValueError):
            self._idle.remove(connection)


class _Connection(asyncio.Protocol):
    """One connection, one call at a time."""

    def __init__(self, now: Callable[[], float], lost: Callable[["_Connection"], None]) -> None:
        self.reusable = False
        """Whether it stands idle after an answer that has ended as it should."""
        self._now, self._lost = now, lost
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._received: Received | None = None
        self._ended: asyncio.Future[None] | None = None
        self._read_at = 0.0

    async def ask(self, request: bytes, received: Received) -> None:
        """Send, and return when the answer has ended; what kept it from doing so is in ``received.error``."""
        if self._transport is None or self._transport.is_closing():
            received.error = "closed"
            return
        self.reusable = False
        self._received = received
        self._ended = asyncio.get_running_loop().create_future()
        received.reads = []
        received.sent = self._now()
        self._transport.write(request)
        await self._ended

    def abort(self) -> None:
        """Drop it at once; what it was asked is nobody's any more."""
        self._received = self._ended = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclass of it

    def data_received(self, data: bytes) -> None:
        """Something was read."""
        self._read_at = self._now()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end("no_http")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name for it
        """The other side closed it, or this one did."""
        self._transport = None
        self._end("closed")
        self._lost(self)

    # --- the parser's

    def on_status(self, status: bytes) -> None:
        """Its words are not needed."""

    def on_headers_complete(self) -> None:
        """The head has come."""
        if self._received is not None:
            self._received.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._received is not None:
            self._received.reads.append((self._read_at, body))

    def on_message_complete(self) -> None:
        """The answer has ended as HTTP says it should."""
        keeps = self._parser.should_keep_alive()
        self._parser = httptools.HttpResponseParser(self)
        self._end(None, reusable=keeps)

    def _end(self, error: str | None, *, reusable: bool = False) -> None:
        received, ended = self._received, self._ended
        self._received = self._ended = None
        if received is None or ended is None:
            return
        received.error = error
        self.reusable = reusable
        if not ended.done():
            ended.set_result(None)
