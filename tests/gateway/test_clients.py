"""Clients that leave, hang up early or cannot keep up: the engine is told, and nothing is left behind."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from serving import QUESTION, chat, raw_engine, serving, streamed

from headway.core.config import Limits
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fake import FakeEngine, Reply

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"odd":[1,{"a":null}]}\n\n'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_cuts_the_engine_off_at_once(stream: bool) -> None:
    reply = Reply(chunks=("a", "b"), gate=asyncio.Event())
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served:
        async with served.connect() as (_, writer):
            writer.write(chat(stream=stream))
            await engine.until(lambda: engine.active == 1)
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "client_gone"
        assert served.gateway.upstream.open_connections == 0


async def test_a_client_that_hangs_up_after_done_had_its_whole_answer() -> None:
    unended = streamed(EVENT + b"data: [DONE]\n\n", end=b"")
    async with raw_engine(unended, b"never asked for") as engine, serving(engine) as served:
        async with served.connect() as (reader, writer):
            writer.write(chat(stream=True))
            await reader.readuntil(b"[DONE]\n\n")
        span, call = await served.call()
    assert (span.error, call.finish_reason) == (None, "stop")


async def test_clients_that_leave_at_any_moment_leave_nothing() -> None:
    async with FakeEngine(lambda _: Reply(chunks=("a", "b"))) as engine, serving(engine) as served:

        async def hurry(steps: int) -> None:
            async with served.connect() as (_, writer):
                writer.write(chat(stream=steps % 2 == 0))
                for _ in range(steps):
                    await asyncio.sleep(0)  # one turn of the loop: connecting, sending and answering take a few

        await asyncio.gather(*[hurry(steps) for steps in range(40)])
        await served.spans(calls=20)  # most were read far enough to be calls


async def test_an_openai_client_that_stops_listening_cuts_the_engine_off() -> None:
    reply = Reply(chunks=("a",) * 1000, itl=0.01)
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served, served.client() as client:
        events = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
        async for _ in events:
            break
        await events.close()
        await engine.wait_cancelled()
        span, call = await served.call()
        assert span.error == "client_gone"
        assert call.finish_reason is None


@asynccontextmanager
async def silent_listener() -> AsyncGenerator[tuple[Replica, asyncio.Event, asyncio.Event]]:
    """Accepts, and says nothing: TLS with it never comes about. Tells when a client came and when it left."""
    came, left = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        left.set()
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Replica(id=ReplicaId("r0"), url=f"https://127.0.0.1:{port}/v1"), came, left


async def test_a_client_that_leaves_while_the_engine_is_connected_to() -> None:
    async with silent_listener() as (replica, came, left), serving(replica) as served:
        async with served.connect() as (_, writer):
            writer.write(chat())
            await came.wait()
        await left.wait()
        span, call = await served.call()
        assert (span.error, call.attempts, call.sent) == ("client_gone", 1, None)


async def test_an_engine_that_cannot_be_connected_to_in_time() -> None:
    async with silent_listener() as (replica, _, left), serving(replica, limits=Limits(connect_seconds=0.1)) as served:
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (502, "upstream_connect")
        assert "no connection within 0.1 s" in answer.error["message"]
        await left.wait()


async def test_a_slow_reader_holds_the_engine_back_and_the_gateway_buffers_little() -> None:
    pieces = ("x" * 8000,) * 4000  # 32 MB: more than all socket buffers on the way together
    limits = Limits(write_buffer_bytes=64 * 1024)
    async with FakeEngine(lambda _: Reply(chunks=pieces)) as engine, serving(engine, limits=limits) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
        writer.write(chat(stream=True))
        await reader.readuntil(b"\r\n\r\n")
        sent = -1
        while sent != engine.chunks_sent:  # until nothing moves any more
            sent = engine.chunks_sent
            await asyncio.sleep(0.2)
        assert 0 < sent < len(pieces)
        assert served.gateway.buffered_bytes <= 64 * 1024 + 256 * 1024 + 16_000  # the limit, a read, a chunk
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest = rest[-8:] + await reader.read(1 << 20)
        assert engine.chunks_sent == len(pieces) + 4
        writer.close()
        assert (await served.call())[0].error is None


async def test_a_reader_that_stops_for_good_is_cut_off() -> None:
    pieces = ("x" * 8000,) * 4000
    limits = Limits(write_buffer_bytes=64 * 1024, stall_seconds=0.3)
    async with FakeEngine(lambda _: Reply(chunks=pieces)) as engine, serving(engine, limits=limits) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
        writer.write(chat(stream=True))
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "client_stalled"
        writer.close()
