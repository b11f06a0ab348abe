"""Streams tell their tokens whether or not the client asked, and the client sees only what it asked for."""

import asyncio
import json
from typing import Any

import pytest
from serving import QUESTION, Served, chat, raw_engine, serving, streamed, whole

from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall, Span
from headway.core.usage import EngineTimings, Usage
from headway.gateway.fake import FakeEngine, Reply, echo

COUNTED = Usage(input_tokens=3, output_tokens=4, cache_read=0)
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":null}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}\n\n'
DONE = b"data: [DONE]\n\n"


def call_of(span: Span) -> ModelCall:
    assert isinstance(span.work, ModelCall)
    return span.work


async def stream(served: Served, **fields: Any) -> bytes:  # noqa: ANN401 - any JSON
    """The body of a streamed answer."""
    raw = await served.raw(chat("connection: close\r\n", version="1.0", stream=True, **fields))
    return raw.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("options", [{}, {"stream_options": None}, {"stream_options": {"include_usage": False}}])
async def test_a_client_that_did_not_ask_has_its_tokens_recorded_and_sees_none(options: dict[str, Any]) -> None:
    async with FakeEngine() as engine, serving(engine) as served, served.client() as client:
        events = await client.chat.completions.create(model="m", messages=QUESTION, stream=True, extra_body=options)
        chunks = [event async for event in events]
        assert all(chunk.choices for chunk in chunks)
        assert not any(chunk.usage for chunk in chunks)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "echo: one two three"
        assert call_of((await served.spans())[0]).usage == COUNTED
    assert engine.requests[0]["stream_options"]["include_usage"] is True


async def test_a_client_that_asked_sees_what_it_asked_for() -> None:
    options = {"include_usage": True, "odd": 1}
    async with FakeEngine() as engine, serving(engine) as served:
        body = await stream(served, stream_options=options)
        assert call_of((await served.spans())[0]).usage == COUNTED
    assert b'"choices":[],"usage":{' in body
    assert engine.requests[0]["stream_options"] == options


async def test_an_answer_in_one_piece_and_an_unobserved_stream_are_asked_for_as_they_came() -> None:
    async with FakeEngine() as engine:
        async with serving(engine) as served:
            await served.ask(chat())
        async with serving(engine, observed=False) as served:
            await stream(served)
    assert not any("stream_options" in request for request in engine.requests)


@pytest.mark.parametrize("cut", [1, 50, 10_000])
async def test_only_the_usage_is_left_out_wherever_the_bytes_were_cut(cut: int) -> None:
    events = b": ping\n\n" + TOKEN + b": note\n" + USAGE.replace(b"\n", b"\r\n") + b": x\n\n" + DONE
    pieces = [events[start : start + cut] for start in range(0, len(events), cut)]
    head, _, _ = streamed(b"x").partition(b"1\r\nx")
    answer = head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    async with raw_engine(answer) as engine, serving(engine) as served:
        assert await stream(served) == b": ping\n\n" + TOKEN + b": x\n\n" + DONE
        assert call_of((await served.spans())[0]).usage == Usage(input_tokens=7, output_tokens=1)


async def test_a_client_gets_its_usage_even_if_an_engine_adds_it_to_the_last_token() -> None:
    both = TOKEN.replace(b'"usage":null', b'"usage":{"prompt_tokens":7,"completion_tokens":1}')
    async with raw_engine(streamed(both + DONE)) as engine, serving(engine) as served:
        assert await stream(served) == both + DONE


def old_engine(body: dict[str, Any], *, status: int = 400, error: str = "Unrecognized: stream_options") -> Reply:
    """Knows no stream_options."""
    return Reply(status=status, error=error) if "stream_options" in body else echo(body)


def too_long(_: dict[str, Any]) -> Reply:
    return Reply(status=400, error="too long")


@pytest.mark.parametrize(
    ("status", "error"), [(400, "Unrecognized: stream_options"), (400, "no"), (422, "extra_forbidden")]
)
async def test_an_engine_that_refuses_to_be_asked_is_asked_plainly_and_never_again(status: int, error: str) -> None:
    old = FakeEngine(lambda body: old_engine(body, status=status, error=error))
    async with old as engine, serving(engine) as served:
        for number in (1, 2):
            assert b"echo:" in await stream(served)
            spans = await served.spans(calls=number)
            assert call_of(spans[-1]).attempts == (2 if number == 1 else 1)
            assert (spans[-1].error, call_of(spans[-1]).usage) == (None, Usage())
    assert ["stream_options" in request for request in engine.requests] == [True, False, False]


async def test_that_one_replica_refuses_says_nothing_of_another() -> None:
    async with FakeEngine(old_engine) as old, FakeEngine() as new, serving(old, new) as served:
        for _ in range(4):
            await stream(served)
    assert ["stream_options" in request for request in old.requests] == [True, False, False]
    assert ["stream_options" in request for request in new.requests] == [True, True]


async def test_a_request_that_is_bad_in_itself_is_refused_twice_at_most_and_told_to_the_client() -> None:
    async with FakeEngine(too_long) as engine, serving(engine) as served:
        answer = await served.ask(chat(stream=True))
        assert (answer.status, answer.error["message"]) == (400, "too long")
        assert (await served.call())[0].error == "http_400"
        assert ["stream_options" in request for request in engine.requests] == [True, False]
        engine.script = echo
        await stream(served)
        assert "stream_options" in engine.requests[-1], "a bad request does not prove that the engine is old"


async def test_a_replica_that_has_answered_is_believed_when_it_refuses_for_another_reason() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await stream(served)
        engine.script = too_long
        assert (await served.ask(chat(stream=True))).status == 400
        assert len(engine.requests) == 2
        engine.script = old_engine  # e.g. another model behind the same address
        assert b"echo:" in await stream(served)
        assert len(engine.requests) == 4


async def test_a_client_that_asked_itself_is_told_of_the_refusal() -> None:
    async with FakeEngine(old_engine) as engine, serving(engine) as served:
        answer = await served.ask(chat(stream=True, stream_options={"include_usage": True}))
        assert answer.status == 400
    assert len(engine.requests) == 1


async def test_an_engine_with_timings_is_not_asked_so_that_clients_keep_them() -> None:
    timings = EngineTimings(
        prefill_tokens=12, prefill_seconds=0.25, decode_tokens=3, decode_seconds=0.1, cached_tokens=30
    )
    reply = Reply(chunks=("a", "b", "c"), timings=timings)
    async with FakeEngine(lambda _: reply) as engine:
        embedded = Replica(id=ReplicaId("e"), url=engine.url, engine="llama.cpp")
        async with serving(embedded) as served:
            await stream(served)
        async with serving(engine) as served:  # any engine at all: the first answer tells
            await stream(served)
            await stream(served)
    assert ["stream_options" in request for request in engine.requests] == [False, True, False]


async def test_a_client_that_leaves_while_the_call_is_sent_anew_leaves_nothing() -> None:
    gate = asyncio.Event()

    def script(body: dict[str, Any]) -> Reply:
        return old_engine(body) if "stream_options" in body else Reply(content="x", gate=gate)

    async with FakeEngine(script) as engine, serving(engine) as served:
        async with served.connect() as (_, writer):
            writer.write(chat(stream=True))
            await engine.until(lambda: len(engine.requests) == 2 and engine.active == 1)
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "client_gone"


async def test_a_long_request_arrives_whole() -> None:
    seen: list[bytes] = []
    body = json.dumps({"messages": [{"role": "user", "content": "x" * 600_000}], "model": "m", "stream": True}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with (
        raw_engine(streamed(TOKEN + DONE), seen=seen) as engine,
        serving(engine) as served,
        served.connect() as (reader, writer),
    ):
        writer.write(head + body)
        await reader.readuntil(b"[DONE]\n\n")
    sent = seen[0].partition(b"\r\n\r\n")[2]
    assert sent == b'{"stream_options":{"include_usage":true},' + body[1:]


async def test_whole_answers_to_a_stream_are_passed_on() -> None:
    async with raw_engine(whole(b'{"choices":[],"usage":{}}')) as engine, serving(engine) as served:
        assert (await served.ask(chat(stream=True))).body == b'{"choices":[],"usage":{}}'
