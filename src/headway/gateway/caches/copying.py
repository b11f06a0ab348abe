"""A client that keeps a copy of what it is sent, and one that is nobody."""

import math
from typing import Final

from headway.gateway.front import Answering, Client
from headway.gateway.responses import JSON, Failure, Headers

_OK: Final = 200


class Copying:
    """Passes everything on to ``client`` and keeps it, up to ``largest`` bytes: what was relayed can be given again.

    It has the whole answer, or says that it has not.
    """

    __slots__ = ("_client", "_encoded", "_ended", "_pieces", "_room", "_status", "media", "streamed")

    def __init__(self, client: Client, largest: int) -> None:
        self._client = client
        self._room = largest
        self._pieces: list[bytes] = []
        self._status = 0
        self._encoded = False
        self._ended = False
        self.media = b""
        """Content type of the answer."""
        self.streamed = False

    def body(self) -> bytes | None:
        """The answer; ``None``: it was not a good one, did not end well, was too long, or is in an encoding."""
        if self._status != _OK or not self._ended or self._encoded or self._room < 0:
            return None
        return b"".join(self._pieces)

    @property
    def overflowed(self) -> bool:
        """It was too long."""
        return self._room < 0

    # --- what a client is told

    @property
    def deadline(self) -> float:
        """The client's own."""
        return self._client.deadline

    @deadline.setter
    def deadline(self, value: float) -> None:
        self._client.deadline = value

    @property
    def buffered_bytes(self) -> int:
        """As `Client.buffered_bytes`."""
        return self._client.buffered_bytes

    @property
    def address(self) -> str:
        """As `Client.address`."""
        return self._client.address

    def expire(self, now: float) -> None:
        """As `Client.expire`."""
        self._client.expire(now)

    def watch(self, watcher: Answering) -> None:
        """As `Client.watch`."""
        self._client.watch(watcher)

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """As `Client.respond`."""
        self._head(status, headers)
        self._keep(body)
        self._ended = True
        self._client.respond(status, body, headers)

    def fail(self, problem: Failure) -> None:
        """As `Client.fail`; no answer."""
        self._client.fail(problem)

    def begin(self, status: int, headers: Headers) -> None:
        """As `Client.begin`."""
        self.streamed = True
        self._head(status, headers)
        self._client.begin(status, headers)

    def send(self, data: bytes) -> None:
        """As `Client.send`."""
        self._keep(data)
        self._client.send(data)

    def end(self, *, close: bool = False) -> None:
        """As `Client.end`."""
        self._ended = not close
        self._client.end(close=close)

    def abort(self) -> None:
        """As `Client.abort`."""
        self._client.abort()

    def drain(self) -> None:
        """As `Client.drain`."""
        self._client.drain()

    def cancel(self, problem: Failure) -> None:
        """As `Client.cancel`."""
        self._client.cancel(problem)

    def _head(self, status: int, headers: Headers) -> None:
        self._status = status
        for name, value in headers:
            if name == b"content-type":
                self.media = value
            elif name == b"content-encoding" and value != b"identity":
                self._encoded = True

    def _keep(self, data: bytes) -> None:
        if self._room < 0:
            return
        self._room -= len(data)
        if self._room < 0:
            self._pieces.clear()
        else:
            self._pieces.append(data)


class Nobody:
    """The client of a call that is made only to have its answer anew: it reads everything and hears nothing."""

    deadline = math.inf
    buffered_bytes = 0
    address = ""

    def expire(self, now: float) -> None:
        """It has no deadline."""

    def watch(self, watcher: Answering) -> None:
        """It never leaves and is never slow."""

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """Nobody reads it."""

    def fail(self, problem: Failure) -> None:
        """Nobody hears of it."""

    def begin(self, status: int, headers: Headers) -> None:
        """Nobody reads it."""

    def send(self, data: bytes) -> None:
        """Nobody reads it."""

    def end(self, *, close: bool = False) -> None:
        """There is no connection to close."""

    def abort(self) -> None:
        """There is none to cut."""

    def drain(self) -> None:
        """There is none to drain."""

    def cancel(self, problem: Failure) -> None:
        """Whoever makes the call ends it."""
