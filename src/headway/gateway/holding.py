"""Readers that stand between an answer and its client while it is not certain that the client is to have it."""

from collections.abc import Callable
from typing import Final

from headway.gateway.front import Reader
from headway.gateway.responses import JSON, Failure, Headers

_OK: Final = 200


class Holding:
    """Keeps an answer until it is let go to ``client``, or dropped with this.

    Args:
        client: who is to have it, perhaps.
        largest: bytes of a stream that are kept; of one that is longer nothing is held back any more.
    """

    def __init__(self, client: Reader, largest: int) -> None:
        self._client = client
        self._largest = largest
        self._size = 0
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._problem: Failure | None = None
        self._ending: Callable[[], None] | None = None
        self.status = 0
        """Of the answer; 0: there is none."""
        self.streamed = False
        self.let_go = False
        """The client has it, or gets it as it comes."""

    @property
    def body(self) -> bytes:
        """As far as it has come."""
        return b"".join(self._pieces)

    def release(self, rewritten: Callable[[bytes], bytes] | None = None) -> None:
        """Let the client have it; ``rewritten``: its body, in other words."""
        self.let_go = True
        client, body = self._client, self.body
        if rewritten is not None and self.status == _OK:
            body = rewritten(body)
        if self.streamed:
            client.begin(self.status, self._headers)
            if body:
                client.send(body)
        elif self._problem is not None:
            client.fail(self._problem)
        elif self.status:
            client.respond(self.status, body, self._headers)
        self._pieces.clear()
        if self._ending is not None:
            self._ending()

    # --- what a client is told

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """As `Reader.respond`."""
        self.status, self._headers, self._pieces = status, headers, [body]

    def fail(self, problem: Failure) -> None:
        """As `Reader.fail`."""
        self._problem = problem

    def begin(self, status: int, headers: Headers) -> None:
        """As `Reader.begin`."""
        self.status, self._headers, self.streamed = status, headers, True

    def send(self, data: bytes) -> None:
        """As `Reader.send`."""
        if self.let_go:
            self._client.send(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._largest:
            self.release()

    def end(self, *, close: bool = False) -> None:
        """As `Reader.end`."""
        if self.let_go:
            self._client.end(close=close)
        else:
            self._ending = lambda: self._client.end(close=close)

    def abort(self) -> None:
        """As `Reader.abort`."""
        if self.let_go:
            self._client.abort()
        else:
            self._ending = self._client.abort


class Standby:
    """Passes an answer on as it comes; where there is none, the client is told nothing: another is at hand."""

    def __init__(self, client: Reader) -> None:
        self._client = client
        self.spared = False
        """The client was told nothing, though this is over."""

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """As `Reader.respond`."""
        if status == _OK:
            self._client.respond(status, body, headers)
        else:
            self.spared = True

    def fail(self, problem: Failure) -> None:
        """As `Reader.fail`."""
        del problem
        self.spared = True

    def begin(self, status: int, headers: Headers) -> None:
        """As `Reader.begin`."""
        self._client.begin(status, headers)

    def send(self, data: bytes) -> None:
        """As `Reader.send`."""
        self._client.send(data)

    def end(self, *, close: bool = False) -> None:
        """As `Reader.end`."""
        self._client.end(close=close)

    def abort(self) -> None:
        """As `Reader.abort`."""
        self._client.abort()
