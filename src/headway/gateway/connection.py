"""The side that faces an engine: one HTTP/1.1 connection that carries one exchange at a time."""

import asyncio
import socket
from typing import Final, Protocol, cast

import httptools
from msgspec import Struct

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.core.span import ErrorType
from headway.gateway.deadlines import NEVER, Deadlines
from headway.gateway.responses import Headers

_OK: Final = 200


class Breakdown(Struct, frozen=True, kw_only=True):
    """How an exchange with an engine broke off."""

    error: ErrorType
    detail: str
    """Half a sentence that follows the replica's name."""
    silent: bool = False
    """Not one byte of an answer had come."""


class Exchange(Protocol):
    """Who asked, and is told of the answer as it comes. After the last three nothing more is told."""

    def answer_head(self, status: int, headers: Headers, fields: dict[bytes, bytes]) -> None:
        """The answer's head; ``fields`` is its headers for looking up."""
        ...

    def answer_body(self, data: bytes, now: float) -> None:
        """A piece of its body, without the framing."""
        ...

    def answer_end(self, now: float) -> None:
        """The answer is complete; the connection is free again."""
        ...

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        """There will be no (more) answer."""
        ...

    def met(self, error: Exception) -> None:
        """Being told of the answer failed: a fault of our own that nobody foresaw."""
        ...


class Owner(Protocol):
    """Who keeps a replica's connections."""

    def opened(self, connection: "UpstreamConnection") -> None:
        """The connection stands."""
        ...

    def freed(self, connection: "UpstreamConnection") -> None:
        """An exchange has ended well and the connection may carry another."""
        ...

    def lost(self, connection: "UpstreamConnection") -> None:
        """The connection is gone, or never came to stand."""
        ...


class UpstreamConnection(asyncio.Protocol):
    """A connection to one replica."""

    __slots__ = (
        "_answered",
        "_body",
        "_clock",
        "_complete",
        "_deadlines",
        "_exchange",
        "_fields",
        "_given_up",
        "_head_bytes",
        "_head_told",
        "_headers",
        "_keep_alive",
        "_limits",
        "_owner",
        "_parser",
        "_paused",
        "_status",
        "_transport",
        "_until_close",
        "deadline",
        "on_body",
        "reused",
        "sent_at",
    )

    def __init__(self, owner: Owner, limits: Limits, clock: Clock, deadlines: Deadlines) -> None:
        self._owner = owner
        self._limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._transport: asyncio.Transport
        self._exchange: Exchange | None = None
        self.deadline = NEVER
        self.sent_at = 0.0
        self.reused = False
        """Whether the exchange under way is not its first."""
        self._answered = False
        """Any byte of the answer has come."""
        self._status = 0
        """Of the head that is complete; 0 before."""
        self._head_told = False
        self._head_bytes = 0
        self._headers: Headers = []
        self._fields: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        """What one read has brought of the answer's body, until it is told."""
        self.on_body = self._body.append
        """A piece of the body, as the parser tells it; once a token, so without a step between."""
        self._parser = httptools.HttpResponseParser(self)
        self._until_close = False
        self._keep_alive = False
        self._complete = False
        self._paused = False
        self._given_up = False

    # --- what the pool and the exchange tell

    def send(self, head: bytes, body: bytes | memoryview, exchange: Exchange) -> None:
        """Begin an exchange."""
        self._exchange = exchange
        self.sent_at = self._clock.now()
        self.deadline = self.sent_at + self._limits.first_byte_seconds
        self._answered = self._head_told = self._complete = self._until_close = False
        self._status = self._head_bytes = 0
        self._headers = []
        if len(body) < self._limits.write_buffer_bytes:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    def rest(self, until: float) -> None:
        """Idle in the pool, at most until then."""
        self.deadline = until
        self.reused = True

    def pause(self) -> None:
        """Read no further: whoever the answer is for cannot keep up."""
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()
            self.deadline = NEVER

    def resume(self) -> None:
        """Read on."""
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()
            self.deadline = self._clock.now() + self._limits.stall_seconds

    def abort(self) -> None:
        """Cut the connection at once; the exchange, if any, is told nothing more."""
        self._exchange = None
        self._transport.abort()

    @property
    def is_closing(self) -> bool:
        """Whether it can carry nothing any more."""
        return self._transport.is_closing()

    def give_up(self) -> None:
        """Connecting was given up. The loop may still say that it stands, or never say that it is gone again."""
        self._given_up = True
        self._deadlines.discard(self)
        self._owner.lost(self)

    # --- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The replica accepted."""
        self._transport = cast("asyncio.Transport", transport)
        if self._given_up:
            self._transport.abort()
            return
        raw = cast("socket.socket", transport.get_extra_info("socket"))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._deadlines.add(self)
        self._owner.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; an exchange under way is told."""
        self._deadlines.discard(self)
        self._owner.lost(self)
        part = "before its answer was complete" if self._answered else "without an answer"
        how = "closed the connection" if exc is None else f"broke the connection ({type(exc).__name__})"
        self._break("upstream_closed", f"{how} {part}")

    def eof_received(self) -> bool:
        """The replica sends no more; that ends an answer without length or chunks in good order."""
        if self._until_close and self._exchange is not None:
            self._complete = True
            self._tell(self._exchange, self._clock.now())
        return False

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        exchange = self._exchange
        if exchange is None:
            self._transport.abort()  # an answer that nobody asked for: nothing on this connection can be trusted
            return
        now = self._clock.now()
        self._answered = True
        self.deadline = now + self._limits.stall_seconds
        problem = ""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            if not self._complete:
                raise
            self._transport.abort()
        except httptools.HttpParserUpgrade:
            problem = "switched to another protocol"
        except httptools.HttpParserError as error:
            problem = f"sent an answer that is not valid HTTP/1.1 ({error})"
        if not self._status:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.header_bytes:
                problem = problem or f"sent a header longer than {self._limits.header_bytes} bytes"
        self._tell(exchange, now)
        if problem:
            self._break("upstream_malformed", problem)

    def expire(self, now: float) -> None:
        """The replica took too long, or the idle connection is old."""
        waited = now - self.sent_at
        if self._exchange is None:
            self._transport.close()
        elif self._answered:
            limit = f"the gateway's limit --stall-seconds, which is {self._limits.stall_seconds:g} s"
            self._break("upstream_stalled", f"sent nothing in mid-answer for longer than {limit}")
        else:
            limit = f"the gateway's limit --first-byte-seconds is {self._limits.first_byte_seconds:g} s"
            self._break("upstream_timeout", f"had not begun to answer after {waited:.1f} s; {limit}")

    # --- what the parser tells

    def on_message_begin(self) -> None:
        """The first byte of an answer; a second answer was not asked for."""
        if self._complete:
            raise ValueError

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is dropped."""
        if not self._status:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The header has ended."""
        status = self._parser.get_status_code()
        if status < _OK:
            self._headers = []  # 100 Continue and the like: the answer is yet to come
            return
        self._status = status
        self._keep_alive = self._parser.should_keep_alive()
        fields = self._fields = dict(self._headers)
        self._until_close = b"content-length" not in fields and b"transfer-encoding" not in fields

    def on_message_complete(self) -> None:
        """The answer has ended."""
        self._complete = self._status >= _OK

    # --- within

    def _tell(self, exchange: Exchange, now: float) -> None:
        """Pass on what one read has brought. A fault that is met then is the exchange's own, and no other's."""
        try:
            if not self._head_told and self._status:
                self._head_told = True
                exchange.answer_head(self._status, self._headers, self._fields)
            body = self._body
            if body:
                data = b"".join(body)
                body.clear()
                exchange.answer_body(data, now)
            if self._complete and self._exchange is exchange:
                self._exchange = None
                self._end_or_rest()
                exchange.answer_end(now)
        except Exception as error:  # noqa: BLE001 - the event loop would only log it, and the client would wait
            exchange.met(error)

    def _end_or_rest(self) -> None:
        if self._paused:
            self.resume()
        unsent = self._transport.get_write_buffer_size()
        if unsent or not self._keep_alive or self._transport.is_closing():
            self._transport.abort() if unsent else self._transport.close()
        else:
            self._owner.freed(self)

    def _break(self, error: str, detail: str) -> None:
        exchange, self._exchange = self._exchange, None
        self._transport.abort()
        if exchange is not None:
            breakdown = Breakdown(error=ErrorType(error), detail=detail, silent=not self._answered)
            try:
                exchange.answer_broken(breakdown, self._clock.now())
            except Exception as fault:  # noqa: BLE001 - as above
                exchange.met(fault)
