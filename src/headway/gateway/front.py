"""What lies between a client's connection and whoever answers it: the request, and who tells whom what."""

import asyncio
from typing import Protocol

from msgspec import Struct

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.gateway.deadlines import Deadlines, Expiring
from headway.gateway.responses import JSON, Failure, Headers
from headway.gateway.unforeseen import Unforeseen


class Reader(Protocol):
    """Whoever reads an answer, as those see it who give it."""

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """Send a whole answer."""
        ...

    def fail(self, problem: Failure) -> None:
        """Send a failure as the whole answer."""
        ...

    def begin(self, status: int, headers: Headers) -> None:
        """Send the head of an answer that follows in pieces."""
        ...

    def send(self, data: bytes) -> None:
        """Send a piece, which must not be empty."""
        ...

    def end(self, *, close: bool = False) -> None:
        """The last piece was sent; ``close``: and something went wrong, so that the connection ends too."""
        ...

    def abort(self) -> None:
        """Cut the connection: the answer cannot be ended in good order."""
        ...


class Client(Reader, Expiring, Protocol):
    """A client's connection, as those see it who answer on it."""

    @property
    def buffered_bytes(self) -> int:
        """What was sent and not yet taken by the client's side."""
        ...

    @property
    def address(self) -> str:
        """Whence the client calls: its host, or nothing where that cannot be told."""
        ...

    def watch(self, watcher: "Answering") -> None:
        """Tell ``watcher`` how the client fares, until its answer has ended."""
        ...

    def drain(self) -> None:
        """Close once the request under way, if any, is answered."""
        ...

    def cancel(self, problem: Failure) -> None:
        """End at once: what is being answered ends with ``problem``."""
        ...


class Request(Struct, eq=False, gc=False):
    """A request, as far as it was read; whoever has to answer it gets it whole."""

    headers: Headers
    received: float
    """When its first byte came; epoch seconds."""
    method: bytes = b""
    path: bytes = b""
    """The target as it was sent."""
    fields: dict[bytes, bytes] = {}
    """The headers for looking up; of a repeated one, the last."""
    body: bytes = b""


class Answering(Protocol):
    """Whoever is answering a client's request, and so must know how the client fares."""

    def client_gone(self, error: str) -> None:
        """The client left or was cut off; ``error`` is the word for it. Nothing can be sent any more."""
        ...

    def client_blocked(self) -> None:
        """The client reads slower than it is sent to: send nothing more for now."""
        ...

    def client_ready(self) -> None:
        """The client has caught up."""
        ...

    def cancel(self, problem: Failure) -> None:
        """Answer with ``problem`` now."""
        ...


class Handler(Protocol):
    """What requests are handed to."""

    def handle(self, request: Request, client: Client) -> None:
        """Answer ``request`` on ``client``, now or later."""
        ...

    def refused(self, request: Request, problem: Failure) -> None:
        """A request was turned away before it was complete."""
        ...


class Front:
    """What all client connections of one gateway share."""

    def __init__(self, handler: Handler, limits: Limits, clock: Clock, deadlines: Deadlines) -> None:
        self.handler = handler
        self.limits = limits
        self.clock = clock
        self.deadlines = deadlines
        self.unforeseen = Unforeseen()
        self.names: frozenset[str] | None = None
        """Public names by which this machine may be called; ``None``: any, because others are to reach it."""
        self.connections: set[Client] = set()
        self.draining = False
        self._emptied = asyncio.Event()

    def left(self, connection: Client) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        if self.draining and not self.connections:
            self._emptied.set()

    async def emptied(self, seconds: float | None) -> bool:
        """Wait until a draining front has no connection left; False when ``seconds`` were not enough."""
        if self.connections:
            try:
                async with asyncio.timeout(seconds):
                    await self._emptied.wait()
            except TimeoutError:
                return False
        return True
