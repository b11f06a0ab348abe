"""A real gateway for tests: it serves on a free port, and leaving it proves that nothing was left behind."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import openai
from msgspec import Struct, structs

from headway.core.clock import Clock, SystemClock
from headway.core.config import Limits, Recording
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall, Span
from headway.gateway.app import Gateway
from headway.gateway.caches.opening import Opening
from headway.gateway.door import Door
from headway.gateway.fake import FakeEngine
from headway.gateway.fleet import LiveFleet
from headway.gateway.naming import Naming
from headway.gateway.scheduling import Scheduling, open_turns
from headway.gateway.siblings import Siblings
from headway.gateway.tariff import Tariff
from headway.gateway.turns import Turns
from headway.gateway.wiring import Passes
from headway.policy.identify import Identifier
from headway.policy.route import RoutePolicy
from headway.policy.routing.least_loaded import LeastLoaded
from headway.trace.record import Recorder

QUESTION: list[Any] = [{"role": "user", "content": "one two three"}]


class SpanList:
    """Where a test's recorder writes."""

    lost = 0

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def write(self, spans: Sequence[Span]) -> None:
        self.spans += spans


class Ids:
    """Ids that a test can foresee: 1, 2, 3 … as 32 hex digits."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> str:
        self._last += 1
        return f"{self._last:032x}"


class Raw(Struct, frozen=True):
    """An HTTP answer as a raw socket saw it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The OpenAI error in the body."""
        return json.loads(self.body)["error"]


class Served:
    """A running gateway."""

    def __init__(
        self, gateway: Gateway, port: int, recorder: Recorder, written: SpanList, turns: Turns | None = None
    ) -> None:
        self.gateway = gateway
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"
        self._recorder = recorder
        self._written = written
        self._turns = turns

    async def until_waiting(self, count: int, *, or_more: bool = False) -> None:
        """Come back when ``count`` calls wait for their turn."""
        assert self._turns is not None
        async with asyncio.timeout(10):
            while self._turns.waiting < count if or_more else self._turns.waiting != count:  # noqa: ASYNC110 - nobody is told when it changes
                await asyncio.sleep(0.001)

    def client(self, **options: Any) -> openai.AsyncOpenAI:  # noqa: ANN401 - the client's own options
        """An OpenAI client that does not hide failures by trying again."""
        http = openai.DefaultAsyncHttpxClient(verify=False)
        return openai.AsyncOpenAI(
            base_url=self.url, api_key="caller", max_retries=0, timeout=20, http_client=http, **options
        )

    async def spans(self, calls: int = 1) -> list[Span]:
        """All spans, once there are those of ``calls`` model calls."""
        async with asyncio.timeout(10):
            while True:
                await asyncio.to_thread(self._recorder.flush)
                if len([span for span in self._written.spans if isinstance(span.work, ModelCall)]) >= calls:
                    return list(self._written.spans)

    async def stored(self, count: int) -> list[Span]:
        """Spans by start as a store has them, each id once, once there are so many."""
        async with asyncio.timeout(10):
            while True:
                await asyncio.to_thread(self._recorder.flush)
                latest = {(span.task, span.id): span for span in self._written.spans}
                if len(latest) >= count:
                    return sorted(latest.values(), key=lambda span: span.start)

    async def call(self) -> tuple[Span, ModelCall]:
        """The one model call there is."""
        (span,) = [span for span in await self.spans() if isinstance(span.work, ModelCall)]
        assert isinstance(span.work, ModelCall)
        return span, span.work

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A raw connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def raw(self, data: bytes) -> bytes:
        """All that comes back for ``data`` until the gateway closes the connection."""
        async with self.connect() as (reader, writer), asyncio.timeout(10):
            writer.write(data)
            return await reader.read()

    async def ask(self, data: bytes) -> Raw:
        """One answer with a length to ``data``; the connection may stay open."""
        async with self.connect() as (reader, writer), asyncio.timeout(10):
            writer.write(data)
            return await read_answer(reader)


async def read_answer(reader: asyncio.StreamReader) -> Raw:
    """The next answer that has a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Raw(int(first.split()[1]), headers, body)


def chat(extra: str = "", version: str = "1.1", **fields: Any) -> bytes:  # noqa: ANN401 - any JSON
    """A chat completion's bytes."""
    body = json.dumps({"model": "m", "messages": QUESTION, **fields}).encode()
    head = f"POST /v1/chat/completions HTTP/{version}\r\nhost: x\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@asynccontextmanager
async def serving(  # noqa: PLR0913 - each part of a gateway is a parameter
    *engines: FakeEngine | Replica,
    limits: Limits | None = None,
    recording: Recording | None = None,
    policy: RoutePolicy | None = None,
    identifier: Identifier | None = None,
    clock: Clock | None = None,
    observed: bool = True,
    host: str = "127.0.0.1",
    names: tuple[str, ...] = (),
    door: Door | None = None,
    naming: Naming | None = None,
    siblings: Siblings | None = None,
    cache: Opening | None = None,
    tariff: Tariff | None = None,
    passes: Passes | None = None,
    scheduling: Scheduling | None = None,
    tried: RoutePolicy | None = None,
    recorder: Recorder | None = None,
) -> AsyncGenerator[Served]:
    """A gateway before ``engines``, named r0, r1 …; ``observed``: whether calls are identified and recorded.

    A ``recorder`` of the test's own stays the test's to close.
    """
    replicas = [
        engine if isinstance(engine, Replica) else Replica(id=ReplicaId(f"r{number}"), url=engine.url)
        for number, engine in enumerate(engines)
    ]
    written = SpanList()
    fleet, clock, policy = LiveFleet(replicas), clock or SystemClock(), policy or LeastLoaded()
    identifier = identifier or Identifier(Ids(), measure=scheduling is not None)
    turns = open_turns(scheduling, policy, fleet, identifier, clock, tried=tried)
    with contextlib.ExitStack() as stack:
        if recorder is None:
            recorder = stack.enter_context(Recorder(written, capacity=10_000, interval=0.01))
        gateway = Gateway(
            fleet,
            policy=policy,
            identifier=identifier if observed else None,
            recorder=recorder if observed else None,
            limits=limits or Limits(),
            recording=recording or Recording(),
            clock=clock,
            passes=structs.replace(
                passes or Passes(door=door, naming=naming, cache=cache, tariff=tariff),
                siblings=siblings,
                turns=turns,
                batch=frozenset() if scheduling is None else scheduling.batch,
            ),
        )
        _, port = await gateway.start(host, 0, names)
        try:
            yield Served(gateway, port, recorder, written, turns)
        finally:
            await gateway.close(drain=2)
        assert not gateway.open_connections, "a client's connection was left behind"
        assert not gateway.upstream.open_connections, "an engine's connection was left behind"
        assert not any(load.in_flight for load in gateway.fleet.view().loads), "a call was left counted as in flight"
        assert turns is None or not turns.waiting, "a call was left waiting"
        assert gateway.journal.faults == 0


def streamed(events: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """An event stream as one chunk."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return b"%b%x\r\n%b\r\n%b" % (head, len(events), events, end)


def whole(body: bytes, extra: bytes = b"") -> bytes:
    """An answer in one piece."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%bcontent-length: %d\r\n\r\n" % (extra, len(body))
    return head + body


@asynccontextmanager
async def raw_engine(*answers: bytes, seen: list[bytes] | None = None) -> AsyncGenerator[Replica]:
    """An engine that answers its first request with the first of these bytes and so on, then closes.

    An empty answer closes the connection unanswered; the next request then comes on another one.
    """
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            length = re.search(rb"content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            if seen is not None:
                seen.append(head + body)
            answer = left.pop(0)
            if not answer:
                break
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Replica(id=ReplicaId("r0"), url=f"http://127.0.0.1:{port}/v1")
