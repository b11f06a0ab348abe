"""A scripted engine: a real HTTP server on loopback that speaks chat completions and breaks on request.

For tests, benchmarks and trying an agent without a model. Every failure that a real engine is known for is a `Fault`;
every wait can be an event, so that a test needs no sleep.
"""

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, cast

import httptools
import msgspec

from headway.gateway.fake_reply import (
    CREATED,
    Fault,
    Reply,
    broken_body,
    broken_events,
    echo,
    failure,
    head,
)
from headway.gateway.fake_slots import FakeSlots
from headway.wire.openai import ToolCall

__all__ = ["FakeEngine", "Fault", "Reply", "ToolCall", "echo"]

_CHANGING = re.compile(r"/slots/(\d+)\?action=(save|restore)")
_SECRET = {"authorization", "api-key", "x-api-key", "cookie", "proxy-authorization"}


class FakeEngine:
    """An engine on a free loopback port; use it as an async context manager.

    Args:
        script: decides each reply from the decoded request body. If it raises, the client gets a 500 and leaving
            the context raises the error again.
        models: names that ``/v1/models`` lists; any name is answered.
        api_key: when given, requests without it as their bearer token get a 401.
        slots: when given, it has that many, as llama.cpp does, and no more calls at once.
    """

    def __init__(
        self,
        script: Callable[[dict[str, Any]], Reply] = echo,
        *,
        models: tuple[str, ...] = ("fake",),
        api_key: str | None = None,
        slots: int | None = None,
    ) -> None:
        self.script = script
        self.slots = None if slots is None else FakeSlots(slots)
        self.models = models
        self.api_key = api_key
        self.health = 200
        """Status that ``/health`` answers with; set it to make the engine look ill."""
        self.requests: list[dict[str, Any]] = []
        """Decoded bodies of the chat completions asked for, oldest first."""
        self.headers: list[dict[str, str]] = []
        """Their headers, lower-case, without secrets."""
        self.probes: list[str] = []
        """Paths of all other requests."""
        self.cancelled = 0
        """Answers whose client went away before their end."""
        self.active = 0
        """Answers under way."""
        self.connections = 0
        """Connections accepted, ever."""
        self.chunks_sent = 0
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._changed = asyncio.Event()
        self._script_error: Exception | None = None

    @property
    def url(self) -> str:
        """Base URL, up to and including ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def open_connections(self) -> int:
        """Connections open now."""
        return len(self._open)

    async def come_up(self) -> None:
        """Listen: on a free port the first time, later on the same one again."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def go_down(self) -> None:
        """Stop listening and drop every connection: from now on, connecting is refused."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self.drop_connections()
        await server.wait_closed()

    async def drop_connections(self) -> None:
        """Close every connection at once, as an engine that crashes does; it keeps listening."""
        tasks = [task for connection in self._open if (task := connection.abort()) is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.until(lambda: not self._open)

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until ``condition`` holds; it is looked at whenever something happens in this engine.

        Raises:
            TimeoutError: it did not come true within ``seconds``.
        """
        async with asyncio.timeout(seconds):
            while not condition():
                await self._changed.wait()

    async def wait_cancelled(self, count: int = 1) -> None:
        """Wait until ``count`` answers in all were cut short by their clients."""
        await self.until(lambda: self.cancelled >= count)

    async def __aenter__(self) -> Self:
        await self.come_up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_down()
        if self._script_error is not None and error is None:
            raise self._script_error

    def changed(self) -> None:
        """Wake those who wait in `until`."""
        self._changed.set()
        self._changed = asyncio.Event()

    def opened(self, connection: "_Connection") -> None:
        """A client connected."""
        self.connections += 1
        self._open.add(connection)
        self.changed()

    def closed(self, connection: "_Connection") -> None:
        """A client's connection ended."""
        self._open.discard(connection)
        self.changed()

    def ask(self, headers: dict[str, str], raw: bytes) -> tuple[Reply, dict[str, Any]]:
        """The scripted reply to one chat completion."""
        if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
            return Reply(status=401, error="wrong API key"), {}
        try:
            body = msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.DecodeError as error:
            return Reply(status=400, error=f"request body: {error}"), {}
        if not isinstance(body.get("stream_options"), dict | None):
            return Reply(status=400, error="stream_options: expected an object"), {}
        self.requests.append(body)
        self.headers.append({name: value for name, value in headers.items() if name not in _SECRET})
        self.changed()
        try:
            return self.script(body), body
        except Exception as error:  # noqa: BLE001 - kept, and raised again where the context is left
            self._script_error = error
            return Reply(status=500, error="the script raised"), body

    def look_up(self, path: str, raw: bytes = b"") -> tuple[int, str, bytes]:
        """Status, content type and body of everything that is not a chat completion."""
        self.probes.append(path)
        self.changed()
        if self.slots is not None and path == "/slots":
            return 200, "application/json", self.slots.state()
        if self.slots is not None and (changing := _CHANGING.fullmatch(path)) is not None:
            status, body = self.slots.change(int(changing[1]), changing[2], msgspec.json.decode(raw)["filename"])
            return status, "application/json", body
        match path:
            case "/health" | "/v1/health":
                return self.health, "application/json", b'{"status":"ok"}'
            case "/v1/models":
                data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fake"} for name in self.models]
                return 200, "application/json", msgspec.json.encode({"object": "list", "data": data})
            case "/metrics":
                return 200, "text/plain; version=0.0.4", f"fake_requests_total {len(self.requests)}\n".encode()
            case _:
                return 404, "application/json", failure(f"no such path: {path}")


class _Connection(asyncio.Protocol):
    """One client's connection: parses a request, runs its answer as a task, then reads the next."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._writable = asyncio.Event()
        self._writable.set()
        self._answering: asyncio.Task[None] | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._headers: dict[str, str] = {}
        self._url = self._body = b""
        self._last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._engine.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._answering is not None and not self._answering.done():
            self._engine.cancelled += 1
            self._answering.cancel()
        self._writable.set()
        self._engine.closed(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._transport.write(head(400, {"connection": "close"}, "application/json") + failure(str(error)))
            self._transport.close()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def on_message_begin(self) -> None:
        self._headers, self._url, self._body = {}, b"", b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._headers.get("expect", "").lower() == "100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._answering is not None and not self._answering.done():
            self._transport.abort()  # a pipelined request; no client of ours sends one
            return
        self._last = not self._parser.should_keep_alive()
        target = self._url.decode("latin-1")
        path = target.partition("?")[0]
        if path != "/v1/chat/completions":
            status, kind, body = self._engine.look_up(target if "?action=" in target else path, self._body)
            self._transport.write(head(status, {"content-length": str(len(body))}, kind) + body)
            if self._last:
                self._transport.close()
            return
        reply, request = self._engine.ask(self._headers, self._body)
        self._answering = asyncio.get_running_loop().create_task(self._answer(reply, request))

    def abort(self) -> asyncio.Task[None] | None:
        """Drop the connection; returns the answer that this cuts short, if any."""
        task, self._answering = self._answering, None
        if task is not None:
            task.cancel()
        self._transport.abort()
        return task

    async def _answer(self, reply: Reply, request: dict[str, Any]) -> None:
        slots = self._engine.slots
        slot = None if slots is None else slots.begin(request)
        self._engine.active += 1
        self._engine.changed()
        try:
            if reply.gate is not None:
                await reply.gate.wait()
            if request.get("stream") and reply.status == 200:  # noqa: PLR2004 - OK
                await self._stream(reply, request)
            else:
                await self._whole(reply, request)
            self._last |= reply.fault in {"close_after_answer", "framed_by_close"}
            if self._last or reply.headers.get("connection") == "close":
                self._transport.close()
        finally:
            self._engine.active -= 1
            if slots is not None and slot is not None:
                slots.end(slot, "".join(reply.pieces))
            self._engine.changed()

    async def _whole(self, reply: Reply, request: dict[str, Any]) -> None:
        await asyncio.sleep(reply.ttft + reply.itl * max(0, len(reply.pieces) - 1))
        kind, length, body = broken_body(reply, request)
        framing = {} if reply.fault == "framed_by_close" else {"content-length": str(length)}
        start = head(reply.status, {**framing, **reply.headers}, kind)
        if not await self._broken_before(reply, start):
            self._transport.write(start + body)
            await self._broken_midway(reply)

    async def _stream(self, reply: Reply, request: dict[str, Any]) -> None:
        framing = {} if reply.fault == "framed_by_close" else {"transfer-encoding": "chunked"}
        kind = "text/html" if reply.fault == "wrong_content_type" else "text/event-stream"
        start = head(200, {**framing, **reply.headers}, kind)
        if await self._broken_before(reply, start):
            return
        self._transport.write(start)
        events = list(broken_events(reply, request))
        for index, (pause, data) in enumerate(events):
            if pause:
                await asyncio.sleep(pause)
            await self._writable.wait()
            if index == len(events) // 2 and await self._broken_midway(reply):
                return
            self._send(reply, data)
        if reply.fault != "framed_by_close":
            self._transport.write(b"0\r\n\r\n")

    def _send(self, reply: Reply, data: bytes) -> None:
        self._engine.chunks_sent += 1
        framed = data if reply.fault == "framed_by_close" else b"%x\r\n%b\r\n" % (len(data), data)
        self._transport.write(framed)

    async def _broken_before(self, reply: Reply, start: bytes) -> bool:
        match reply.fault:
            case "close_before_answer":
                self._transport.close()
            case "close_mid_header":
                self._transport.write(start[: len(start) // 2])
                self._transport.close()
            case "not_http":
                self._transport.write(b"220 mail.example ready\r\n")
                self._transport.close()
            case "stall_before":
                await asyncio.Event().wait()  # until connection_lost cancels it
            case _:
                return False
        return True

    async def _broken_midway(self, reply: Reply) -> bool:
        match reply.fault:
            case "bad_chunk_framing":
                self._transport.write(b"zz\r\n")
                return False
            case "close_mid_stream" | "short_body":
                self._transport.close()
            case "reset_mid_stream":
                raw = cast("socket.socket", self._transport.get_extra_info("socket"))
                with contextlib.suppress(OSError):  # the client may have been quicker
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._transport.abort()
            case "stall_mid_stream":
                await asyncio.Event().wait()  # until connection_lost cancels it
            case _:
                return False
        return True
