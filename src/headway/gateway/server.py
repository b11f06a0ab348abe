"""The side that faces the agent: one HTTP/1.1 connection, its requests read whole and answered strictly in turn."""

import asyncio
import socket
from typing import Final, cast

import httptools

from headway.gateway.deadlines import NEVER
from headway.gateway.front import Answering, Front, Request
from headway.gateway.refusals import (
    LEFT_EARLY,
    body_too_long,
    header_problem,
    header_size_problem,
    header_too_long,
    not_http,
    stranger_problem,
    too_many_connections,
    too_slow,
)
from headway.gateway.responses import CONTINUE, JSON, LAST_CHUNK, Failure, Headers, connection_bound, head
from headway.gateway.target import to_origin_form
from headway.wire.dialect import Dialect
from headway.wire.dialects import BY_PATH, CHAT, MESSAGES

_UPGRADE: Final = frozenset({b"connection", b"upgrade"})
_LINGER_SECONDS: Final = 2.0
"""How long a client that we have turned away may take to read why, before the connection is cut."""


class _StopParsingError(Exception):
    """Unwinds the parser out of a callback; what it means is in the connection's state by then."""


class ClientConnection(asyncio.Protocol):
    """One client's connection.

    A request that arrives before the last one was answered (pipelining) is not served: the connection closes after
    the answer under way, which HTTP allows and makes every client send the rest again elsewhere.
    """

    __slots__ = (
        "_answering",
        "_body",
        "_body_bytes",
        "_busy",
        "_chunked",
        "_deaf",
        "_front",
        "_header_bytes",
        "_headers",
        "_in_header",
        "_keep_alive",
        "_linger",
        "_parser",
        "_ready",
        "_request",
        "_transport",
        "_version",
        "_watcher",
        "deadline",
    )

    def __init__(self, front: Front) -> None:
        self._front = front
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self.deadline = NEVER
        self._watcher: Answering | None = None
        self._request: Request
        """The one that is being read or answered, while ``_busy``."""
        self._busy = False
        self._ready = False
        self._answering = False
        self._keep_alive = True
        self._deaf = False
        """What still comes in is not read any more."""
        self._linger = False
        self._chunked = False
        self._version = "1.1"
        self._in_header = False
        self._headers: Headers = []
        self._header_bytes = 0
        """Bytes read until the header was complete; they may include some of the body."""
        self._body: list[bytes] = []
        self._body_bytes = 0

    @property
    def buffered_bytes(self) -> int:
        """What was sent and not yet taken by the client's side."""
        return self._transport.get_write_buffer_size()

    @property
    def address(self) -> str:
        """Whence the client calls."""
        peer = cast("tuple[str, int] | None", self._transport.get_extra_info("peername"))
        return peer[0] if peer else ""

    # --- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        front = self._front
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=front.limits.write_buffer_bytes)
        raw = cast("socket.socket", transport.get_extra_info("socket"))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        front.deadlines.add(self)
        front.connections.add(self)
        self.deadline = front.clock.now() + front.limits.idle_seconds
        if len(front.connections) > front.limits.connections:
            self._keep_alive = False
            self.fail(too_many_connections(front.limits))

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; whoever answers it is told at once."""
        del exc
        self._front.deadlines.discard(self)
        self._front.left(self)
        self._deaf = True
        self._keep_alive = False
        self._tell_gone("client_gone")
        if self._busy and not self._answering:
            self._front.handler.refused(self._request, LEFT_EARLY)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._deaf:
            return
        if self._in_header:
            self._header_bytes += len(data)
        elif not self._busy:
            self._header_bytes = len(data)
        body_at: int | None = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            body_at = upgrade.args[0]
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _StopParsingError):
                raise
        except httptools.HttpParserError as error:
            if not (self._ready or self._answering):
                self._turn_away(not_http(error))
            self._deaf = True
            self._keep_alive = False
        if body_at is not None:
            self._read_without_upgrade(data[body_at:])
        if self._in_header and self._header_bytes > self._front.limits.header_bytes:
            self._turn_away(header_too_long(self._front.limits))
        if self._ready:
            self._ready = False
            self._answering = True
            self._handle()

    def eof_received(self) -> bool:
        """The client sends no more. If it waits for an answer it is taken to have left: closing looks the same."""
        if self._answering:
            self._tell_gone("client_gone")
            self._transport.abort()
        return False

    def pause_writing(self) -> None:
        """The client reads slower than it is sent to."""
        self.deadline = self._front.clock.now() + self._front.limits.stall_seconds
        if self._watcher is not None:
            self._watcher.client_blocked()

    def resume_writing(self) -> None:
        """The client has caught up."""
        if self._answering:
            self.deadline = NEVER
        if self._watcher is not None:
            self._watcher.client_ready()

    def expire(self, now: float) -> None:
        """A limit on time was reached."""
        if self._linger:
            self._transport.abort()
        elif self._answering:
            self._tell_gone("client_stalled")
            self._transport.abort()
        elif self._busy:
            self._turn_away(too_slow("header" if self._in_header else "body"))
        else:
            self._close(now)

    # --- what the parser tells

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if self._ready or self._answering:
            self._deaf = True
            self._keep_alive = False
            raise _StopParsingError
        now = self._front.clock.now()
        self.deadline = now + self._front.limits.header_seconds
        self._busy = self._in_header = True
        self._headers = []
        self._request = Request(self._headers, now)

    def on_url(self, url: bytes) -> None:
        """A piece of the request's target."""
        self._request.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is dropped."""
        if self._in_header:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The header has ended."""
        request = self._request
        parser, limits = self._parser, self._front.limits
        self._in_header = False
        self._body = []
        self._body_bytes = 0
        self.deadline = request.received + limits.body_seconds
        self._version = parser.get_http_version()
        self._keep_alive = parser.should_keep_alive() and not self._front.draining
        request.method = parser.get_method()
        fields = request.fields = dict(self._headers)
        if not request.path.startswith(b"/"):
            to_origin_form(request)
        problem = header_problem(self._version, fields, limits)
        if problem is None and self._header_bytes > limits.header_bytes:
            problem = header_size_problem(request, limits)
        if problem is None and self._front.names is not None:
            problem = stranger_problem(fields, self._front.names)
        if problem is not None:
            self._turn_away(problem)
            raise _StopParsingError
        if b"expect" in fields and fields[b"expect"].lower() == b"100-continue":
            self._transport.write(CONTINUE)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > self._front.limits.body_bytes:
            self._turn_away(body_too_long(self._body_bytes, self._front.limits))
            raise _StopParsingError

    def on_message_complete(self) -> None:
        """The request has ended."""
        self._request.body = b"".join(self._body)  # of one piece it is that piece, not a copy
        self.deadline = NEVER
        self._ready = True

    # --- what whoever answers tells

    def watch(self, watcher: Answering) -> None:
        """Tell ``watcher`` how the client fares, until its answer has ended."""
        self._watcher = watcher

    def respond(self, status: int, body: bytes, headers: Headers = JSON) -> None:
        """Send a whole answer."""
        start = head(status, headers, b"content-length: %d\r\n%b" % (len(body), self._connection_line()))
        without_body = self._busy and self._request.method == b"HEAD"
        self._transport.write(start if without_body else start + body)
        self._finish()

    def fail(self, problem: Failure) -> None:
        """Send a failure as the whole answer."""
        dialect = _dialect_of(self._request) if self._busy else CHAT
        self.respond(problem.status, dialect.error(problem), [*JSON, *problem.headers])

    def begin(self, status: int, headers: Headers) -> None:
        """Send the head of an answer that follows in pieces."""
        self._chunked = self._version == "1.1"
        if not self._chunked:
            self._keep_alive = False  # HTTP/1.0 knows no chunks: the end of the connection ends the body
        framing = b"transfer-encoding: chunked\r\n" if self._chunked else b""
        self._transport.write(head(status, headers, framing + self._connection_line()))

    def send(self, data: bytes) -> None:
        """Send a piece, which must not be empty."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def end(self, *, close: bool = False) -> None:
        """The last piece was sent; ``close``: and something went wrong, so that the connection ends too."""
        if self._chunked:
            self._transport.write(LAST_CHUNK)
        if close:
            self._keep_alive = False
        self._finish()

    def abort(self) -> None:
        """Cut the connection: the answer cannot be ended in good order."""
        self._watcher = None
        self._transport.abort()

    def drain(self) -> None:
        """Close once the request under way, if any, is answered."""
        self._keep_alive = False
        if not self._busy:
            self._close(self._front.clock.now())

    def cancel(self, problem: Failure) -> None:
        """End at once: what is being answered ends with ``problem``."""
        if self._watcher is not None:
            self._watcher.cancel(problem)
        elif not self._linger:
            self._close(self._front.clock.now())

    # --- within

    def _handle(self) -> None:
        try:
            self._front.handler.handle(self._request, self)
        except Exception as error:  # noqa: BLE001 - the last resort: a fault of ours is an answer too, and no hung client
            problem = self._front.unforeseen.met(error)
            if self._watcher is not None:
                self._watcher.cancel(problem)
            elif self._answering:
                self.fail(problem)

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Read the request once more without its wish to change protocols, which HTTP lets a server pass over.

        The parser stops at the header of such a request and would lose its body; Java's own client sends one with
        every POST. A CONNECT can only be answered.
        """
        request = self._request
        if request.method == b"CONNECT":
            self._deaf = True
            self._keep_alive = False
            return
        dropped = connection_bound(request.fields, _UPGRADE)
        kept = [b"%b: %b\r\n" % header for header in request.headers if header[0] not in dropped]
        head_bytes = b"%b %b HTTP/%b\r\n%b\r\n" % (
            request.method,
            request.path,
            self._version.encode(),
            b"".join(kept),
        )
        self._ready = self._busy = False
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(head_bytes + rest)

    def _connection_line(self) -> bytes:
        if not self._keep_alive:
            return b"connection: close\r\n"
        return b"connection: keep-alive\r\n" if self._version == "1.0" else b""

    def _finish(self) -> None:
        self._watcher = None
        self._busy = self._answering = False
        front = self._front
        if self._keep_alive:
            self.deadline = front.deadlines.recent + front.limits.idle_seconds
        else:
            self._close(front.clock.now())

    def _close(self, now: float) -> None:
        """Close in good order; if the client may still be sending, let it read our answer first."""
        self._linger = True
        self.deadline = now + (_LINGER_SECONDS if self._deaf else self._front.limits.stall_seconds)
        if self._deaf and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        else:
            self._transport.close()
        self._deaf = True

    def _turn_away(self, problem: Failure) -> None:
        if self._busy:
            self._front.handler.refused(self._request, problem)
        self._in_header = self._ready = False
        self._deaf = True
        self._keep_alive = False
        self.fail(problem)

    def _tell_gone(self, error: str) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.client_gone(error)


def _dialect_of(request: Request) -> Dialect:
    """In which a failure is told: the path's; elsewhere Anthropic's clients tell their API's version."""
    dialect = BY_PATH.get(request.path.partition(b"?")[0])
    if dialect is not None:
        return dialect
    return MESSAGES if b"anthropic-version" in request.fields else CHAT
