"""A client that keeps a copy of what it is sent, and one that is nobody."""

from typing import Final

from headway.gateway.front import Reader
from headway.gateway.responses import JSON, Failure, Headers

_OK: Final = 200


class Copying:
    """Passes everything on to ``client`` and keeps it, up to ``largest`` bytes: what was relayed can be given again.

    It has the whole answer, or says that it has not.
    """

    __slots__ = ("_client", "_encoded", "_ended", "_pieces", "_room", "_status", "media", "streamed")

    def __init__(self, client: Reader, largest: int) -> None:
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

    def complete(self) -> None:
        """The stream has said that it is over, though its client left before the end of the response."""
        self._ended = self._ended or self.streamed

    # --- what a client is told

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """As `Reader.respond`."""
        self._head(status, headers)
        self._keep(body)
        self._ended = True
        self._client.respond(status, body, headers)

    def fail(self, problem: Failure) -> None:
        """As `Reader.fail`; no answer."""
        self._client.fail(problem)

    def begin(self, status: int, headers: Headers) -> None:
        """As `Reader.begin`."""
        self.streamed = True
        self._head(status, headers)
        self._client.begin(status, headers)

    def send(self, data: bytes) -> None:
        """As `Reader.send`."""
        self._keep(data)
        self._client.send(data)

    def end(self, *, close: bool = False) -> None:
        """As `Reader.end`."""
        self._ended = not close
        self._client.end(close=close)

    def abort(self) -> None:
        """As `Reader.abort`."""
        self._client.abort()

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
