"""Connections to engines: small requests beside the calls, TLS, pools that neither leak nor mix."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from serving import chat, raw_engine, read_answer, serving, streamed, whole

from headway.core.clock import SystemClock, VirtualClock
from headway.core.config import Limits
from headway.core.errors import BadInputError, UpstreamError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.connection import Breakdown
from headway.gateway.deadlines import Deadlines
from headway.gateway.fake import FakeEngine, Fault, Reply
from headway.gateway.responses import Headers
from headway.gateway.upstream import Upstream

LISTED = b'{"object":"list","data":[]}'


@asynccontextmanager
async def upstream(limits: Limits | None = None) -> AsyncGenerator[Upstream]:
    clock = SystemClock()
    one = Upstream(limits or Limits(), clock, Deadlines(clock, 1.0))
    try:
        yield one
    finally:
        await one.close()
        assert one.open_connections == 0


def replica_of(engine: FakeEngine, **more: str) -> Replica:
    return Replica(id=ReplicaId("r0"), url=engine.url, api_key=more.get("api_key"))


async def test_fetch_asks_below_the_base_url() -> None:
    async with FakeEngine(models=("a",)) as engine, upstream() as up:
        status, body = await up.fetch(replica_of(engine), "GET", "/models")
        assert status == 200
        assert b'"id":"a"' in body
        assert engine.probes == ["/v1/models"]


async def test_fetch_sends_a_body_and_the_replicas_key() -> None:
    seen: list[bytes] = []
    async with raw_engine(whole(b"ok"), seen=seen) as engine, upstream() as up:
        keyed = Replica(id=engine.id, url=engine.url, api_key="secret")
        assert await up.fetch(keyed, "POST", "/tokenize", b'{"a":1}', authorization=b"Bearer caller") == (200, b"ok")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert head.startswith(b"POST /v1/tokenize HTTP/1.1\r\n")
    assert b"authorization: Bearer secret" in head
    assert b"caller" not in head


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "closed the connection before its answer was complete"),
        (b"220 mail.example ready\r\n\r\n", "not valid HTTP/1.1"),
        (b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", "switched to another protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 5000, "header longer than 1000 bytes"),
        (whole(b"x" * 2000), "sent more than 1000 bytes"),
    ],
)
async def test_a_fetch_that_fails_says_why(answer: bytes, says: str) -> None:
    limits = Limits(header_bytes=1000, response_bytes=1000)
    async with raw_engine(answer) as engine, upstream(limits) as up:
        with pytest.raises(UpstreamError, match=says):
            await up.fetch(engine, "GET", "/models")


async def test_a_fetch_is_given_up_in_time() -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(gate=gate)) as engine, upstream() as up:
        with pytest.raises(UpstreamError, match=r"within 0.1 s"):
            await up.fetch(replica_of(engine), "POST", "/chat/completions", b'{"messages":[]}', timeout=0.1)
        await engine.wait_cancelled()


async def test_a_cancelled_fetch_leaves_no_connection() -> None:
    async with FakeEngine(lambda _: Reply(gate=asyncio.Event())) as engine, upstream() as up:
        fetching = asyncio.create_task(up.fetch(replica_of(engine), "POST", "/chat/completions", b'{"messages":[]}'))
        await engine.until(lambda: engine.active == 1)
        fetching.cancel()
        await engine.wait_cancelled()


async def test_an_engine_that_is_not_there() -> None:
    async with FakeEngine() as engine, upstream() as up:
        await engine.go_down()
        with pytest.raises(UpstreamError, match="'r0' cannot be reached"):
            await up.fetch(replica_of(engine), "GET", "/models")


@pytest.mark.parametrize("url", ["ftp://x/v1", "x/v1", "http:///v1", ""])
async def test_a_url_that_cannot_be_used(url: str) -> None:
    async with upstream() as up:
        with pytest.raises(BadInputError, match="not an http or https URL"):
            await up.fetch(Replica(id=ReplicaId("r0"), url=url), "GET", "/models")


async def test_a_replica_that_moved_gets_a_new_pool_and_the_old_connections_end() -> None:
    async with FakeEngine() as old, FakeEngine() as new, serving(old) as served:
        await served.ask(chat())
        assert old.open_connections == 1
        served.gateway.fleet.put(Replica(id=ReplicaId("r0"), url=new.url))
        await served.ask(chat())
        await old.until(lambda: old.open_connections == 0)
        assert len(new.requests) == 1


async def test_informational_answers_are_not_the_answer() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with raw_engine(early + whole(LISTED)) as engine, upstream() as up:
        assert await up.fetch(engine, "GET", "/models") == (200, LISTED)


async def test_bytes_that_nobody_asked_for_cost_the_connection_and_not_the_next_answer() -> None:
    answers = (whole(b'{"n":1}') + whole(b'{"n":"forged"}'), whole(b'{"n":2}'))
    async with raw_engine(*answers) as engine, serving(engine) as served, served.connect() as (reader, writer):
        for number in (1, 2):
            writer.write(chat())
            assert (await read_answer(reader)).body == b'{"n":%d}' % number


async def test_a_stream_that_has_ended_frees_its_connection_even_when_its_reader_was_slow() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":"stop"}]}\n\n' % (b"x" * 300_000)
    limits = Limits(write_buffer_bytes=1024)
    seen: list[bytes] = []
    answers = (streamed(event * 4), whole(b"{}"))
    async with raw_engine(*answers, seen=seen) as engine, serving(engine, limits=limits) as served:
        assert (await served.raw(chat("connection: close\r\n", stream=True))).endswith(b"0\r\n\r\n")
        assert (await served.ask(chat())).status == 200
        assert len(seen) == 2


class Nobody:
    """An exchange that only counts."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.broken: Breakdown | None = None

    def answer_head(self, status: int, headers: Headers, fields: dict[bytes, bytes]) -> None:
        del status, headers, fields
        self.began.set()

    def answer_body(self, data: bytes, now: float) -> None:
        """Not looked at."""

    def answer_end(self, now: float) -> None:
        del now
        self.ended.set()

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        del now
        self.broken = breakdown
        self.ended.set()

    def met(self, error: Exception) -> None:
        raise error


async def test_idle_connections_grow_old_and_a_fresh_one_is_used_first() -> None:
    clock = VirtualClock(1000.0)
    deadlines = Deadlines(clock, 1.0)
    async with FakeEngine() as engine:
        up = Upstream(Limits(idle_seconds=10), clock, deadlines)
        pool = up.pool(replica_of(engine))
        first, second = await pool.connect(), await pool.connect()
        for connection in (first, second):
            nobody = Nobody()
            connection.send(b"GET /v1/models HTTP/1.1\r\n\r\n", b"", nobody)
            await nobody.ended.wait()
            clock.advance(4)
            deadlines.sweep()
        assert pool.idle_connections == 2
        assert pool.take() is second
        clock.advance(3)  # the first has been idle for 11 s, the second is in use
        deadlines.sweep()
        await engine.until(lambda: engine.open_connections == 1)
        assert pool.take() is None
        await up.close()


STALLS: list[tuple[Fault, float, str]] = [
    ("stall_before", 100, "upstream_timeout"),
    ("stall_mid_stream", 10, "upstream_stalled"),
]


@pytest.mark.parametrize(("fault", "patience", "error"), STALLS)
async def test_the_first_byte_and_every_later_one_have_their_limits(fault: Fault, patience: float, error: str) -> None:
    clock = VirtualClock(1000.0)
    deadlines = Deadlines(clock, 1.0)
    async with FakeEngine(lambda _: Reply(content="a b c d", fault=fault)) as engine:
        up = Upstream(Limits(first_byte_seconds=100, stall_seconds=10), clock, deadlines)
        nobody = Nobody()
        connection = await up.pool(replica_of(engine)).connect()
        connection.send(chat(stream=True), b"", nobody)
        await engine.until(lambda: engine.active == 1)
        if fault == "stall_mid_stream":
            await nobody.began.wait()
        clock.advance(patience - 1)
        deadlines.sweep()
        assert nobody.broken is None
        clock.advance(2)
        deadlines.sweep()
        assert nobody.broken is not None
        assert nobody.broken.error == error
        await engine.wait_cancelled()
        await up.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key and a certificate for 127.0.0.1, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", *curve, "-nodes", "-days", "1", *name, "-keyout", str(key), "-out", str(cert)]
    made = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - fixed arguments
    if made.returncode:
        pytest.skip(f"openssl cannot make a certificate: {made.stderr.decode()[-200:]}")
    return key, cert


@asynccontextmanager
async def tls_engine(key: Path, cert: Path, *answers: bytes) -> AsyncGenerator[Replica]:
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(left.pop(0))
        await writer.drain()
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        yield Replica(id=ReplicaId("r0"), url=f"https://127.0.0.1:{port}/v1")


async def test_an_engine_behind_tls(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    key, cert = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    event = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
    async with tls_engine(key, cert, whole(b'{"n":1}'), streamed(event)) as engine, serving(engine) as served:
        assert (await served.ask(chat())).body == b'{"n":1}'
        assert event in await served.raw(chat("connection: close\r\n", stream=True))
        assert [span.error for span in await served.spans(calls=2)] == [None, None]


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(certificate: tuple[Path, Path]) -> None:
    async with tls_engine(*certificate) as engine, serving(engine) as served:
        answer = await served.ask(chat())
    assert answer.error["code"] == "upstream_connect"
    assert "TLS failed" in answer.error["message"]
