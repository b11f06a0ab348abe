"""HTTP as clients really speak it, and as attackers do: raw bytes against a real gateway."""

import asyncio
import itertools
import json
import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import QUESTION, chat, raw_engine, read_answer, serving, whole

from headway.core.config import Limits
from headway.gateway.fake import FakeEngine, Reply

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
BODY = json.dumps({"model": "m", "messages": QUESTION}).encode()


def chunked(*pieces: bytes) -> bytes:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


async def test_a_kept_alive_connection_serves_one_request_after_another() -> None:
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        for _ in range(3):
            writer.write(chat())
            assert (await read_answer(reader)).status == 200
        assert engine.connections == 1


async def test_a_chunked_request_is_read_whole_and_sent_with_a_length() -> None:
    seen: list[bytes] = []
    async with raw_engine(whole(b"{}"), seen=seen) as engine, serving(engine) as served:
        assert (await served.ask(chunked(BODY[:9], BODY[9:]))).status == 200
    assert seen[0].endswith(b"\r\n\r\n" + BODY)
    assert b"content-length: %d\r\n" % len(BODY) in seen[0]
    assert b"transfer-encoding" not in seen[0]


async def test_a_request_that_comes_byte_by_byte() -> None:
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        for byte in chat():
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await read_answer(reader)).status == 200


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=6), st.booleans())
async def test_any_cut_of_a_request_is_the_same_request(cuts: list[int], in_chunks: bool) -> None:
    data = chunked(BODY[:20], BODY[20:]) if in_chunks else chat()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    seen: list[bytes] = []
    async with raw_engine(whole(b"{}"), seen=seen) as engine, serving(engine, observed=False) as served:
        async with served.connect() as (reader, writer):
            for start, end in itertools.pairwise(edges):
                writer.write(data[start:end])
                await writer.drain()
            assert (await read_answer(reader)).status == 200
        assert seen[0].endswith(b"\r\n\r\n" + BODY)


async def test_a_long_body_arrives_whole() -> None:
    text = "x" * 2_000_000
    async with FakeEngine() as engine, serving(engine) as served:
        assert (await served.ask(chat(padding=text))).status == 200
        assert engine.requests[0]["padding"] == text


@pytest.mark.parametrize("keep", [False, True])
async def test_http_1_0(keep: bool) -> None:
    extra = "connection: keep-alive\r\n" if keep else ""
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        for _ in range(2 if keep else 1):
            writer.write(chat(extra, version="1.0"))
            answer = await read_answer(reader)
            assert answer.status == 200
            assert answer.headers["connection"] == ("keep-alive" if keep else "close")
        if not keep:
            assert await reader.read() == b""


async def test_http_1_0_gets_a_stream_without_chunks() -> None:
    async with FakeEngine(lambda _: Reply(chunks=("a", "b"))) as engine, serving(engine) as served:
        head, _, body = (await served.raw(chat(version="1.0", stream=True))).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


async def test_connection_close_is_honoured() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(chat("connection: close\r\n"))
    assert b"connection: close\r\n" in raw
    assert raw.endswith(b"}")


async def test_expect_continue_is_answered_before_the_body_comes() -> None:
    head, _, body = chat("expect: 100-continue\r\n").partition(b"\r\n\r\n")
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read_answer(reader)).status == 200


@pytest.mark.parametrize("pause", [False, True])
async def test_an_upgrade_is_not_made_but_the_request_is_served(pause: bool) -> None:
    data = chat("connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAEA\r\n")
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        writer.write(data[:-5] if pause else data)
        if pause:
            await writer.drain()
            writer.write(data[-5:])
        assert (await read_answer(reader)).status == 200
        assert engine.requests[0]["messages"] == QUESTION
        assert not {"connection", "upgrade", "http2-settings"} & set(engine.headers[0])


async def test_a_pipelined_request_behind_an_upgrade_is_not_mixed_in() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(chat("connection: upgrade\r\nupgrade: h2c\r\n") + chat(model="second"))
    assert raw.count(b"HTTP/1.1 200 ") == 1
    assert [request["model"] for request in engine.requests] == ["m"]


WHOLE = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(WHOLE), WHOLE)
SMUGGLING = {
    "length and chunks": HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x",
    "one length twice": HEAD + b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    "a list of lengths": HEAD + b"content-length: 2, 2\r\n\r\n{}",
    "a signed length": HEAD + b"content-length: +2\r\n\r\n{}",
    "a folded header": HEAD + b"x: a\r\n b\r\ncontent-length: 2\r\n\r\n{}",
    "a folded coding": HEAD + b"transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": HEAD + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "another coding first": HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked is not the last": HEAD + b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a space before the colon": HEAD + b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a chunk size that is none": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "a prefixed chunk size": HEAD + b"transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a huge chunk size": HEAD + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than its size": HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "chunks ended by LF": HEAD + b"transfer-encoding: chunked\r\n\r\n2\n{}\n0\n\n",
    "lines ended by LF": b"POST /v1/chat/completions HTTP/1.1\nhost: x\ncontent-length: 2\n\n{}",
    "NUL in a header": HEAD + b"x: a\0b\r\ncontent-length: 2\r\n\r\n{}",
    "two codings": HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n" + CHUNKED,
    "a coding behind a vertical tab": HEAD + b"transfer-encoding: \x0bchunked\r\n\r\n" + CHUNKED,
    "a coding in quotes": HEAD + b'transfer-encoding: "chunked"\r\n\r\n' + CHUNKED,
    "a hexadecimal length": HEAD + b"content-length: 0x%x\r\n\r\n" % len(WHOLE) + WHOLE,
    "a length with more behind it": HEAD + b"content-length: %dx\r\n\r\n" % len(WHOLE) + WHOLE,
    "no digits for a length": HEAD + b"content-length: \r\n\r\n" + WHOLE,
    "a length of many digits": HEAD + b"content-length: 1%020d\r\n\r\n" % len(WHOLE) + WHOLE,
    "CR alone in a header": HEAD + b"x: a\rb\r\ncontent-length: %d\r\n\r\n" % len(WHOLE) + WHOLE,
    "a space in a name": HEAD + b"x y: z\r\ncontent-length: %d\r\n\r\n" % len(WHOLE) + WHOLE,
    "a signed chunk size": HEAD + b"transfer-encoding: chunked\r\n\r\n+" + CHUNKED,
    "chunks in HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("data", SMUGGLING.values(), ids=SMUGGLING.keys())
async def test_what_smuggling_is_made_of_is_refused_and_the_connection_closed(data: bytes) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(data + chat())
        assert raw.startswith(b"HTTP/1.1 400 ")
        assert raw.count(b"HTTP/1.1 ") == 1
        assert json.loads(raw.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"
        assert engine.requests == []
        assert (await served.call())[0].error == "bad_request"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400),
        (b"BREW /pot HTTP/1.1\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n", 404),
    ],
)
async def test_what_is_not_for_us_is_told_so(data: bytes, status: int) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(data)
    assert raw.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in raw


async def test_pipelined_requests_are_not_mixed_the_first_is_served_and_the_connection_closed() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(chat() + chat(model="second") + chat(model="third"))
        assert raw.count(b"HTTP/1.1 200 ") == 1
        assert b"connection: close" in raw
        assert [request["model"] for request in engine.requests] == ["m"]


async def test_a_request_piped_into_a_stream_waits_for_a_connection_of_its_own() -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(chunks=("a", "b"), gate=gate)) as engine, serving(engine) as served:
        async with served.connect() as (reader, writer):
            writer.write(chat(stream=True))
            await engine.until(lambda: engine.active == 1)
            writer.write(chat(model="second"))
            gate.set()
            raw = await reader.read()
        assert raw.count(b"HTTP/1.1 ") == 1
        assert raw.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
        assert len(engine.requests) == 1


async def test_rubbish_after_a_good_request_does_not_spoil_its_answer() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        raw = await served.raw(chat() + b"\x00\x01rubbish")
    assert raw.startswith(b"HTTP/1.1 200 ")
    assert raw.count(b"HTTP/1.1 ") == 1


async def test_a_body_over_the_limit_is_refused_before_it_comes() -> None:
    limits = Limits(body_bytes=1000)
    async with FakeEngine() as engine, serving(engine, limits=limits) as served:
        raw = await served.raw(HEAD + b"expect: 100-continue\r\ncontent-length: 1001\r\n\r\n")
        assert raw.startswith(b"HTTP/1.1 413 ")
        assert b"1001 bytes" in raw
        assert b"limit of 1000" in raw
        assert b"--body-bytes" in raw
        assert (await served.call())[0].error == "body_too_large"


async def test_a_chunked_body_over_the_limit_is_cut_off_and_the_client_can_still_read_why() -> None:
    limits = Limits(body_bytes=1000)
    async with FakeEngine() as engine, serving(engine, limits=limits) as served:
        raw = await served.raw(chunked(*[b"x" * 600] * 400))
        assert raw.startswith(b"HTTP/1.1 413 ")
        assert (await served.call())[0].error == "body_too_large"


@pytest.mark.parametrize("split", [1, 40])
async def test_a_header_over_the_limit_is_refused_however_it_comes(split: int) -> None:
    limits = Limits(header_bytes=2000)
    data = (
        HEAD + b"".join(b"x-%d: %b\r\n" % (number, b"y" * 100) for number in range(30)) + b"content-length: 2\r\n\r\n{}"
    )
    async with (
        FakeEngine() as engine,
        serving(engine, limits=limits) as served,
        served.connect() as (reader, writer),
    ):
        for start in range(0, len(data), len(data) // split):
            writer.write(data[start : start + len(data) // split])
            await writer.drain()
        assert (await read_answer(reader)).status == 431
        assert (await served.call())[0].error == "header_too_large"
        page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body
        assert b'headway_errors_total{error_type="header_too_large"} 1\n' in page


@pytest.mark.parametrize("before", [b"", chat()])
async def test_a_target_over_the_limit_is_refused_and_recorded_on_any_connection(before: bytes) -> None:
    data = HEAD.replace(b" HTTP/", b"?" + b"y" * 70_000 + b" HTTP/") + b"content-length: 2\r\n\r\n{}"
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        if before:
            writer.write(before)
            await read_answer(reader)
        writer.write(data)
        assert (await read_answer(reader)).status == 431
        assert (await served.spans(calls=2 if before else 1))[-1].error == "header_too_large"


async def test_a_long_body_beside_a_short_header_is_no_long_header() -> None:
    async with FakeEngine() as engine, serving(engine, limits=Limits(header_bytes=500)) as served:
        assert (await served.ask(chat(padding="x" * 5000))).status == 200


async def test_one_connection_more_than_allowed_is_told_so() -> None:
    limits = Limits(connections=1)
    async with FakeEngine() as engine, serving(engine, limits=limits) as served, served.connect() as (reader, writer):
        writer.write(chat())
        assert (await read_answer(reader)).status == 200
        raw = await served.raw(b"")
        assert raw.startswith(b"HTTP/1.1 503 ")
        assert b"too_many_connections" in raw
        writer.write(chat())
        assert (await read_answer(reader)).status == 200


QUICK = Limits(header_seconds=0.1, body_seconds=0.1, idle_seconds=0.1)


@pytest.mark.parametrize("sent", [HEAD, HEAD + b"content-length: 10\r\n\r\n{"])
async def test_a_request_that_does_not_come_to_its_end_is_given_up(sent: bytes) -> None:
    async with FakeEngine() as engine, serving(engine, limits=QUICK) as served:
        raw = await served.raw(sent)
        assert raw.startswith(b"HTTP/1.1 408 ")
        assert (await served.call())[0].error == "request_timeout"


@pytest.mark.parametrize("before", [b"", chat()])
async def test_an_idle_connection_is_closed(before: bytes) -> None:
    async with FakeEngine() as engine, serving(engine, limits=QUICK) as served:
        assert (await served.raw(before)).count(b"HTTP/1.1 ") == (1 if before else 0)


async def test_a_client_that_leaves_in_the_middle_of_its_request_is_recorded() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        async with served.connect() as (_, writer):
            writer.write(HEAD + b"content-length: 10\r\n\r\n{")
            await writer.drain()
        assert (await served.call())[0].error == "client_gone"


async def test_a_reset_by_the_client_cuts_the_engine_off() -> None:
    async with FakeEngine(lambda _: Reply(chunks=("a",), gate=asyncio.Event())) as engine, serving(engine) as served:
        async with served.connect() as (_, writer):
            writer.write(chat(stream=True))
            await engine.until(lambda: engine.active == 1)
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "client_gone"
