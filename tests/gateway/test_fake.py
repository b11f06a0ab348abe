"""The fake engine is what other tests stand on: its answers please a real client, its faults are exactly as named."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any, Literal

import openai
import pytest

from headway.core.usage import EngineTimings, Usage
from headway.gateway.fake import FakeEngine, Fault, Reply, ToolCall

QUESTION: list[Any] = [{"role": "user", "content": "one two three"}]


def client_of(engine: FakeEngine, key: str = "k") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=engine.url, api_key=key, max_retries=0)


async def raw(engine: FakeEngine, *, stream: bool) -> bytes:
    """Everything that the engine sends to one request, until it closes the connection."""
    async with connect(engine) as (reader, writer):
        send(writer, stream=stream)
        return await reader.read()


@contextlib.asynccontextmanager
async def connect(engine: FakeEngine) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = int(engine.url.rsplit(":", 1)[1].removesuffix("/v1"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def send(writer: asyncio.StreamWriter, *, stream: bool, extra: str = "") -> None:
    body = json.dumps({"model": "m", "stream": stream, "messages": QUESTION}).encode()
    writer.write(
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{extra}content-length: {len(body)}\r\n\r\n".encode() + body
    )


async def test_the_openai_client_reads_a_whole_answer() -> None:
    async with FakeEngine() as engine, client_of(engine) as client:
        answer = await client.chat.completions.create(model="m", messages=QUESTION)
    assert answer.choices[0].message.content == "echo: one two three"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 4)


async def test_the_openai_client_reads_a_stream_with_reasoning_tools_usage_and_timings() -> None:
    timings = EngineTimings(
        prefill_tokens=5, prefill_seconds=0.25, decode_tokens=2, decode_seconds=0.5, cached_tokens=3
    )
    reply = Reply(
        reasoning=("hm",),
        chunks=("a", "b"),
        tool_calls=(ToolCall("call_1", "look", '{"q":1}'),),
        usage=Usage(input_tokens=8, output_tokens=4, cache_read=3),
        timings=timings,
    )
    async with FakeEngine(lambda _: reply) as engine, client_of(engine) as client:
        stream = await client.chat.completions.create(
            model="m", messages=QUESTION, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert [delta.content for delta in deltas if delta.content] == ["a", "b"]
    assert [piece for delta in deltas if (piece := (delta.model_extra or {}).get("reasoning_content"))] == ["hm"]
    functions = [call.function for delta in deltas for call in delta.tool_calls or [] if call.function]
    assert "".join(function.arguments or "" for function in functions) == '{"q":1}'
    finish = next(chunk for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason)
    assert finish.choices[0].finish_reason == "tool_calls"
    assert (finish.model_extra or {})["timings"] == {
        "cache_n": 3,
        "prompt_n": 5,
        "prompt_ms": 250.0,
        "predicted_n": 2,
        "predicted_ms": 500.0,
    }
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens, usage.total_tokens, usage.prompt_tokens_details.cached_tokens) == (8, 12, 3)


@pytest.mark.parametrize(("report", "asked", "seen"), [("asked", False, 0), ("always", False, 1), ("never", True, 0)])
async def test_usage_in_a_stream_is_sent_when_it_should_be(
    report: Literal["asked", "always", "never"], asked: bool, seen: int
) -> None:
    async with FakeEngine(lambda _: Reply(content="a", report_usage=report)) as engine, client_of(engine) as client:
        stream = await client.chat.completions.create(
            model="m", messages=QUESTION, stream=True, stream_options={"include_usage": asked}
        )
        assert len([chunk async for chunk in stream if chunk.usage]) == seen


async def test_requests_are_kept_without_secrets() -> None:
    async with FakeEngine() as engine, client_of(engine, "sk-hidden") as client:
        await client.chat.completions.create(model="m", messages=QUESTION, extra_headers={"x-headway-task": "t1"})
    assert engine.requests == [{"model": "m", "messages": QUESTION}]
    assert engine.headers[0]["x-headway-task"] == "t1"
    assert "sk-hidden" not in str(engine.headers)


async def test_a_wrong_key_is_refused_and_a_status_is_an_openai_error() -> None:
    async with FakeEngine(lambda _: Reply(status=429, error="slow down"), api_key="good") as engine:
        async with client_of(engine, "bad") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="m", messages=QUESTION)
        async with client_of(engine, "good") as client:
            with pytest.raises(openai.RateLimitError, match="slow down"):
                await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert len(engine.requests) == 1


async def test_probes_are_answered_and_counted() -> None:
    async with FakeEngine(models=("small", "large")) as engine, client_of(engine) as client:
        assert [model.id async for model in client.models.list()] == ["small", "large"]
        for path, status in (("/health", 503), ("/metrics", 200), ("/nowhere", 404)):
            engine.health = 503
            async with connect(engine) as (reader, writer):
                writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                assert (await reader.readline()).split()[1] == str(status).encode()
    assert engine.probes == ["/v1/models", "/health", "/metrics", "/nowhere"]


async def test_a_client_that_goes_away_cancels_its_answer() -> None:
    async with FakeEngine(lambda _: Reply(content="a b c d", fault="stall_mid_stream")) as engine:
        async with connect(engine) as (reader, writer):
            send(writer, stream=True)
            await reader.readuntil(b" b")
            assert (engine.active, engine.cancelled, engine.open_connections) == (1, 0, 1)
        await engine.wait_cancelled()
        await engine.until(lambda: engine.active == 0)
    assert (engine.cancelled, engine.open_connections) == (1, 0)


async def test_a_gate_holds_the_answer_back() -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(content="a", gate=gate)) as engine, client_of(engine) as client:
        call = asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION))
        await engine.until(lambda: engine.active == 1)
        assert not call.done()
        gate.set()
        assert (await call).choices[0].message.content == "a"


async def test_a_slow_reader_stops_the_engine() -> None:
    pieces = ("x" * 10_000,) * 2_000
    async with FakeEngine(lambda _: Reply(chunks=pieces)) as engine:
        async with connect(engine) as (reader, writer):
            send(writer, stream=True)
            await reader.readuntil(b"xxx")
            await engine.until(lambda: engine.active == 1)
            assert engine.chunks_sent < 2_000
        await engine.wait_cancelled()


async def test_down_refuses_and_up_is_the_same_address() -> None:
    async with FakeEngine() as engine:
        url = engine.url
        await engine.go_down()
        with pytest.raises(ConnectionRefusedError):
            await raw(engine, stream=True)
        await engine.come_up()
        assert engine.url == url
        async with client_of(engine) as client:
            assert (await client.chat.completions.create(model="m", messages=QUESTION)).choices
            assert engine.connections == 1
            await engine.drop_connections()
            assert engine.open_connections == 0


async def test_a_script_that_raises_is_a_500_and_raises_where_the_context_ends() -> None:
    def script(_: dict[str, Any]) -> Reply:
        raise LookupError("nothing left to say")

    async def call() -> None:
        async with FakeEngine(script) as engine, client_of(engine) as client:
            with pytest.raises(openai.InternalServerError):
                await client.chat.completions.create(model="m", messages=QUESTION)

    with pytest.raises(LookupError, match="nothing left"):
        await call()


async def test_leaving_while_an_answer_is_under_way_leaves_nothing() -> None:
    engine = FakeEngine(lambda _: Reply(fault="stall_before"))
    await engine.come_up()
    async with connect(engine) as (_, writer):
        send(writer, stream=True)
        await engine.until(lambda: engine.active == 1)
        await engine.go_down()
    assert (engine.active, engine.open_connections, engine.cancelled) == (0, 0, 0)
    assert len(asyncio.all_tasks()) == 1


async def test_expect_continue_and_bad_requests() -> None:
    async with FakeEngine() as engine:
        async with connect(engine) as (reader, writer):
            send(writer, stream=False, extra="expect: 100-continue\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        async with connect(engine) as (reader, writer):
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n{")
            assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        async with connect(engine) as (reader, writer):
            writer.write(b"\x00\x01 nonsense\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 400")
        async with connect(engine) as (reader, writer):
            for _ in range(2):
                send(writer, stream=False)
            assert await reader.read() == b""


ENDS_BY_ITSELF: list[tuple[Fault, bool, bytes]] = [
    ("close_before_answer", True, b""),
    ("not_http", False, b"220 mail.example ready\r\n"),
]


@pytest.mark.parametrize(("fault", "stream", "answer"), ENDS_BY_ITSELF)
async def test_faults_before_the_answer(fault: Fault, stream: bool, answer: bytes) -> None:
    async with FakeEngine(lambda _: Reply(content="a b", fault=fault)) as engine:
        assert await raw(engine, stream=stream) == answer


async def test_half_a_header() -> None:
    async with FakeEngine(lambda _: Reply(content="a b", fault="close_mid_header")) as engine:
        answer = await raw(engine, stream=True)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in answer


async def test_faults_in_the_middle_of_a_stream() -> None:
    async def answer(fault: Fault, stream: bool = True) -> bytes:
        reply = Reply(content="a b c d", fault=fault, oversize=5_000, headers={"connection": "close"})
        async with FakeEngine(lambda _: reply) as engine:
            return await raw(engine, stream=stream)

    cut = await answer("close_mid_stream")
    assert b'" b"' in cut
    assert b'" d"' not in cut
    assert b"\r\nzz\r\n" in await answer("bad_chunk_framing")
    assert b'{"choices": [\n\n' in await answer("malformed_json")
    assert b"no event stream" in await answer("malformed_sse")
    assert b"x" * 5_000 in await answer("oversize_event")
    undone = await answer("drop_done")
    assert b"[DONE]" not in undone
    assert undone.endswith(b"\r\n0\r\n\r\n")
    failed = await answer("error_event")
    assert b'data: {"error":{"message":"scripted failure"' in failed
    assert b"[DONE]" not in failed
    assert b"content-type: text/html" in await answer("wrong_content_type")
    plain = await answer("framed_by_close")
    assert b"chunked" not in plain
    assert plain.endswith(b"data: [DONE]\n\n")
    assert (await answer("close_after_answer")).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


async def test_faults_of_a_whole_answer() -> None:
    async def answer(fault: Fault) -> tuple[bytes, bytes]:
        reply = Reply(content="a b c d", fault=fault, oversize=5_000, headers={"connection": "close"})
        async with FakeEngine(lambda _: reply) as engine:
            head, _, body = (await raw(engine, stream=False)).partition(b"\r\n\r\n")
            return head, body

    head, body = await answer("short_body")
    promised = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    assert len(body) == promised // 2
    _, body = await answer("malformed_json")
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)
    _, body = await answer("oversize_event")
    assert len(body) > 5_000
    head, body = await answer("wrong_content_type")
    assert body == b"<html>welcome</html>"
    head, body = await answer("framed_by_close")
    assert b"content-length" not in head
    assert json.loads(body)["choices"][0]["message"]["content"] == "a b c d"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reset_reaches_the_client_as_a_reset(stream: bool) -> None:
    async with FakeEngine(lambda _: Reply(content="a b c d", fault="reset_mid_stream")) as engine:
        with pytest.raises(ConnectionResetError):
            await raw(engine, stream=stream)


@pytest.mark.parametrize("options", [3, "usage", [True], True])
async def test_stream_options_that_are_no_object_are_refused(options: object) -> None:
    async with FakeEngine() as engine, client_of(engine) as client:
        with pytest.raises(openai.BadRequestError, match="expected an object"):
            await client.chat.completions.create(
                model="m", messages=QUESTION, stream=True, extra_body={"stream_options": options}
            )
