"""The endpoint as its users meet it: with the openai package, with a browser's probes, and when it stops."""

import asyncio
import json
from typing import Any

import openai
import pytest
from serving import QUESTION, chat, raw_engine, read_answer, serving, whole

from headway.core.config import Limits
from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall


def request(method: str, path: str) -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode()


def named(engine: FakeEngine | Replica, name: str, *models: str) -> Replica:
    return Replica(id=ReplicaId(name), url=engine.url, models=models)


async def test_the_openai_client_asks_and_is_answered() -> None:
    async with FakeEngine() as engine, serving(engine) as served, served.client() as client:
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
        answer = raw.parse()
        assert answer.choices[0].message.content == "echo: one two three"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 7
        span, _ = await served.call()
        assert raw.headers["x-headway-task"] == span.task


async def test_the_openai_client_reads_a_stream_with_tools_and_usage() -> None:
    reply = Reply(chunks=("a", "b"), tool_calls=(ToolCall("c1", "f", '{"x":1}'),))
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served, served.client() as client:
        async with client.chat.completions.stream(
            model="m", messages=QUESTION, stream_options={"include_usage": True}
        ) as stream:
            answer = await stream.get_final_completion()
        assert answer.choices[0].message.content == "ab"
        calls = answer.choices[0].message.tool_calls
        assert calls is not None
        assert (calls[0].id, calls[0].function.name, calls[0].function.arguments) == ("c1", "f", '{"x":1}')
        assert answer.usage is not None
        _, call = await served.call()
        assert call.usage == Usage(
            input_tokens=answer.usage.prompt_tokens, output_tokens=answer.usage.completion_tokens, cache_read=0
        )


@pytest.mark.parametrize("observed", [True, False])
async def test_many_clients_at_once_each_get_their_own_answer(observed: bool) -> None:
    async with FakeEngine() as engine, serving(engine, observed=observed) as served, served.client() as client:

        async def ask(number: int) -> None:
            messages: list[Any] = [{"role": "user", "content": f"number {number}"}]
            if number % 2:
                answer = await client.chat.completions.create(model="m", messages=messages)
                assert answer.choices[0].message.content == f"echo: number {number}"
            else:
                events = await client.chat.completions.create(model="m", messages=messages, stream=True)
                text = "".join([event.choices[0].delta.content or "" async for event in events])
                assert text == f"echo: number {number}"

        await asyncio.gather(*[ask(number) for number in range(60)])
        if observed:
            spans = [span for span in await served.spans(calls=60) if isinstance(span.work, ModelCall)]
            assert len({span.task for span in spans}) == 60
        assert len(engine.requests) == 60


BAD: list[tuple[bytes, str]] = [
    (b'{"model": "m", ', "not valid JSON"),
    (b"", "not valid JSON"),
    (b'{"messages": []}', "model"),
    (b'{"model": "m", "messages": "hi"}', "$.messages"),
    (b'{"model": "m", "messages": [], "stream": 1}', "$.stream"),
    (b'{"model": "m", "messages": []}', "`messages` is empty"),
    (b'{"model": "m", "messages": [{"role": "user"}, {"role": "user"}, {"content": "x"}]}', "messages[2].role"),
    (b'{"model": "m", "messages": [{"role": "bot", "content": "x"}]}', "messages[0].role"),
]


@pytest.mark.parametrize(("body", "says"), BAD)
async def test_a_bad_body_is_told_what_and_where_and_goes_nowhere(body: bytes, says: str) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with FakeEngine() as engine, serving(engine) as served, served.connect() as (reader, writer):
        writer.write(head + body)
        answer = await read_answer(reader)
        assert answer.status == 400
        assert answer.error["type"] == "invalid_request_error"
        assert says in answer.error["message"]
        assert engine.requests == []
        assert (await served.call())[0].error == "bad_request"
        writer.write(chat())  # the connection is none the worse for it
        assert (await read_answer(reader)).status == 200


async def test_a_model_that_nobody_serves_is_named_with_those_that_are_there() -> None:
    async with FakeEngine() as engine, serving(named(engine, "r0", "small", "large")) as served:
        async with served.client() as client:
            with pytest.raises(openai.NotFoundError, match=r"'huge'.*small, large") as caught:
                await client.chat.completions.create(model="huge", messages=QUESTION)
        assert caught.value.code == "unknown_model"
        span, call = await served.call()
        assert (span.error, call.model, call.attempts) == ("unknown_model", "huge", 0)


async def test_an_empty_fleet_says_so() -> None:
    async with serving() as served:
        answer = await served.ask(chat())
        assert (answer.status, answer.error["code"]) == (503, "no_replica")
        assert (await served.ask(request("GET", "/health"))).status == 503


async def test_a_call_that_no_replica_can_take_now_is_told_why_and_when_to_come_again() -> None:
    async with FakeEngine() as engine, serving(named(engine, "r0", "m"), named(engine, "r1", "m")) as served:
        for name in ("r0", "r1"):
            served.gateway.fleet.mark(ReplicaId(name), False, f"{name} is ill")  # noqa: FBT003 - the fleet's signature
        answer = await served.ask(chat())
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert "(r0: r0 is ill; r1: r1 is ill)" in answer.error["message"]
        assert engine.requests == []


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
async def test_every_role_that_the_protocol_knows_is_served(role: str) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        assert (await served.ask(chat(messages=[{"role": role, "content": "x"}]))).status == 200


async def test_models_that_were_declared_are_listed_without_asking() -> None:
    async with FakeEngine() as engine, serving(named(engine, "r0", "a", "b"), named(engine, "r1", "b")) as served:
        async with served.client() as client:
            assert [model.id async for model in client.models.list()] == ["a", "b"]
        assert engine.probes == []


async def test_replicas_that_declare_none_are_asked_and_their_words_kept() -> None:
    listed = b'{"object":"list","data":[{"id":"b","object":"model","odd":[1]},{"id":"c","meta":null}]}'
    seen: list[bytes] = []
    async with (
        FakeEngine() as engine,
        raw_engine(whole(listed), seen=seen) as other,
        serving(named(engine, "r0", "a"), named(other, "r1")) as served,
    ):
        answer = await served.ask(b"GET /v1/models HTTP/1.1\r\nauthorization: Bearer caller\r\n\r\n")
    models = {model["id"]: model for model in json.loads(answer.body)["data"]}
    assert set(models) == {"a", "b", "c"}
    assert models["b"]["odd"] == [1]
    assert b"authorization: Bearer caller" in seen[0]


async def test_models_of_an_engine_that_cannot_tell() -> None:
    async with raw_engine(whole(b"<html>")) as engine, serving(engine) as served:
        answer = await served.ask(request("GET", "/v1/models"))
    assert (answer.status, answer.error["code"]) == (502, "upstream_models")
    assert "'r0'" in answer.error["message"]


async def test_a_client_that_leaves_before_the_models_are_there() -> None:
    async with raw_engine() as engine, serving(engine) as served, served.connect() as (_, writer):
        writer.write(request("GET", "/v1/models"))
        await writer.drain()


async def test_health_tells_each_replica_and_turns_to_503_when_none_is_left() -> None:
    async with FakeEngine() as engine, serving(engine, engine) as served:

        async def health() -> tuple[int, str, list[bool]]:
            answer = await served.ask(request("GET", "/health"))
            body = json.loads(answer.body)
            return answer.status, body["status"], [replica["healthy"] for replica in body["replicas"]]

        assert await health() == (200, "ok", [True, True])
        served.gateway.fleet.mark(ReplicaId("r0"), False, "test")  # noqa: FBT003 - the fleet's signature
        assert await health() == (200, "degraded", [False, True])
        served.gateway.fleet.mark(ReplicaId("r1"), False, "test")  # noqa: FBT003 - as above
        assert await health() == (503, "down", [False, False])


async def test_metrics_count_calls_and_spans() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await served.ask(chat())
        await served.spans()
        answer = await served.ask(request("GET", "/metrics"))
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"headway_observation_faults_total 0\n" in answer.body
    assert b'model="m"' in answer.body


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("POST", "/v1/completions", 404),
        ("POST", "/v1/chat/completions/", 404),
        ("GET", "/v1/chat/completions", 405),
        ("OPTIONS", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/metrics", 405),
    ],
)
async def test_what_is_not_there(method: str, path: str, status: int) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        answer = await served.ask(request(method, path))
    assert answer.status == status
    assert path in answer.error["message"]
    assert ("allow" in answer.headers) == (status == 405)


async def test_head_is_get_without_the_body() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        for path, status in (("/health", 200), ("/v1/models", 200), ("/nothing", 404)):
            head, _, body = (await served.raw(f"HEAD {path} HTTP/1.0\r\n\r\n".encode())).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 %d " % status)
            assert b"content-length: " in head
            assert body == b""


async def test_an_address_in_use_is_told_with_what_to_do() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        with pytest.raises(BadInputError, match=rf"127.0.0.1:{served.port}.*--port"):
            await served.gateway.start("127.0.0.1", served.port)


async def test_stopping_lets_what_is_under_way_end() -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(chunks=("a", "b"), gate=gate)) as engine, serving(engine) as served:
        async with served.connect() as (idle, _), served.connect() as (reader, writer):
            writer.write(chat(stream=True))
            await engine.until(lambda: engine.active == 1)
            closing = asyncio.create_task(served.gateway.close(drain=10))
            assert await idle.read() == b""  # nothing under way there
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", served.port)
            gate.set()
            assert (await reader.read()).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
            await closing
        assert (await served.call())[0].error is None


@pytest.mark.parametrize("stream", [False, True])
async def test_what_does_not_end_in_time_is_told_why(stream: bool) -> None:
    reply = Reply(chunks=("a",) * 100, itl=10.0 if stream else 0.0, gate=None if stream else asyncio.Event())
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served:
        async with served.connect() as (reader, writer):
            writer.write(chat(stream=stream))
            await engine.until(lambda: engine.active == 1)
            if stream:
                await reader.readuntil(b'"content":"a"')
            await served.gateway.close(drain=0.05)
            raw = await reader.read()
        assert b'"code":"shutdown"' in raw
        assert raw.startswith(b"HTTP/1.1 503 ") != stream
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "shutdown"


async def test_a_client_that_reads_nothing_does_not_hold_up_the_end() -> None:
    reply = Reply(chunks=("x" * 8000,) * 4000)
    limits = Limits(write_buffer_bytes=64 * 1024)
    async with FakeEngine(lambda _: reply) as engine, serving(engine, limits=limits) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
        writer.write(chat(stream=True))
        await engine.until(lambda: engine.chunks_sent > 100)
        await served.gateway.close(drain=0.05)
        assert served.gateway.open_connections == 0
        writer.close()
