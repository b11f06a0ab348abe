"""Clients of every dialect at a real gateway, before engines that speak theirs and engines that do not."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import anthropic
import openai
import pytest
from serving import Raw, Served, raw_engine, serving, streamed, whole

from headway.core.config import Limits
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ModelCall, Retrieval, Span, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from wire import encode, stream

MESSAGES_ENGINE = ("anthropic-messages", "anthropic-count-tokens")
QUESTION: list[Any] = [{"role": "user", "content": "one two three"}]
WEATHER: list[Any] = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]
CALLING = Reply(
    chunks=("Let ", "me look."), tool_calls=(ToolCall("functions.weather:0", "weather", '{"city":"Bonn"}'),)
)
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 15, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 5, "output_tokens": 20},
    "unknown": [1.50],
}
EVENTS = stream(
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 20},
    },
    {"type": "message_stop"},
)


def speaking(replica: Replica | FakeEngine, *dialects: str, name: str = "r0", key: str | None = None) -> Replica:
    return Replica(id=ReplicaId(name), url=replica.url, speaks=dialects, api_key=key)


def claude(served: Served) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    url = served.url.removesuffix("/v1")
    return anthropic.AsyncAnthropic(base_url=url, api_key="caller", max_retries=0, timeout=20, http_client=http)


async def say(client: Any, streams: bool, messages: list[Any]) -> anthropic.types.Message:  # noqa: ANN401 - overloads
    options: dict[str, Any] = {"model": "m", "max_tokens": 50, "tools": WEATHER, "messages": messages}
    if not streams:
        return await client.messages.create(**options)
    async with client.messages.stream(**options) as events:
        return await events.get_final_message()


def post(path: str, body: bytes, extra: str = "") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\n{extra}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def calls_of(spans: Sequence[Span]) -> list[tuple[Span, ModelCall]]:
    return [(span, span.work) for span in spans if isinstance(span.work, ModelCall)]


@pytest.mark.parametrize("streams", [False, True])
async def test_an_anthropic_client_on_a_chat_engine_has_its_whole_task_recorded(streams: bool) -> None:
    replies = [CALLING, Reply(content="It rains.")]
    async with FakeEngine(lambda _: replies.pop(0)) as engine, serving(engine) as served, claude(served) as client:
        message = await say(client, streams, QUESTION)
        text, call = message.content
        assert (text.type, call.type) == ("text", "tool_use")
        assert call.type == "tool_use"
        assert call.input == {"city": "Bonn"}
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
        turns = [*QUESTION, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
        assert (await say(client, streams, turns)).content[0].model_dump()["text"] == "It rains."
        spans = await served.spans(calls=2)
    (first, one), (second, two) = calls_of(spans)
    assert first.task == second.task
    assert one.tool_calls == (ToolCallRef(call.id, "weather"),)
    assert [span.work.call_id for span in spans if isinstance(span.work, ToolUse)] == [call.id]
    assert (one.usage, one.finish_reason) == (Usage(input_tokens=3, output_tokens=3, cache_read=0), "tool_calls")
    assert (one.first_token is not None, one.itl is not None) == (streams, streams)
    assert two.route is not None
    assert two.route.notes[0] == "Translated into openai-chat."
    assert engine.requests[1]["messages"][1]["tool_calls"][0]["id"] == "functions.weather:0"


async def test_what_a_translation_leaves_out_is_in_the_receipt() -> None:
    async with FakeEngine() as engine, serving(engine) as served, claude(served) as client:
        await client.messages.create(model="m", max_tokens=5, messages=QUESTION, extra_body={"top_k": 7})
        _, call = await served.call()
    assert call.route is not None
    assert call.route.notes == (
        "Translated into openai-chat.",
        "`top_k` was left out: the engine's dialect has no such field.",
    )
    assert "top_k" not in engine.requests[0]


@pytest.mark.parametrize("streams", [False, True])
async def test_an_anthropic_engine_is_passed_every_byte_and_its_answer_is_followed(streams: bool) -> None:
    seen: list[bytes] = []
    body = b'{"model": "m" , "max_tokens":5,"messages":[{"role":"user","content":"hi","odd":1}],"unknown":{"a":[]}%b}'
    body %= b',"stream":true' if streams else b""
    extra = "anthropic-version: 2023-06-01\r\nanthropic-beta: x-1\r\nx-api-key: caller\r\nconnection: close\r\n"
    answer = streamed(EVENTS) if streams else whole(encode(MESSAGE), b"request-id: 7\r\n")
    async with raw_engine(answer, seen=seen) as engine, serving(speaking(engine, *MESSAGES_ENGINE)) as served:
        raw = await served.raw(post("/v1/messages?beta=true", body, extra))
        _, call = await served.call()
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    assert sent == body
    assert head.startswith(b"POST /v1/messages HTTP/1.1\r\n")
    assert b"anthropic-beta: x-1\r\nx-api-key: caller\r\n" in head
    assert (EVENTS if streams else encode(MESSAGE)) in raw
    assert call.usage == Usage(input_tokens=100, output_tokens=20, cache_read=80, cache_write=5)
    assert (call.first_token is not None) == streams
    assert call.route is not None
    assert call.route.notes == ()


@pytest.mark.parametrize("key", [None, "secret"])
async def test_a_chat_client_on_an_anthropic_engine(key: str | None) -> None:
    seen: list[bytes] = []
    async with raw_engine(streamed(EVENTS), whole(encode(MESSAGE)), seen=seen) as engine:  # noqa: SIM117 - r0 needs it
        async with serving(speaking(engine, *MESSAGES_ENGINE, key=key)) as served, served.client() as client:
            events = await client.chat.completions.create(
                model="m", messages=QUESTION, stream=True, extra_headers={"openai-organization": "org"}
            )
            text = [event.choices[0].delta.content or "" async for event in events if event.choices]
            assert "".join(text) == "Hello"
            answer = await client.chat.completions.create(model="m", messages=QUESTION)
            calls = answer.choices[0].message.tool_calls
            assert calls is not None
            assert calls[0].id == "toolu_1"
            (_, one), (_, two) = calls_of(await served.spans(calls=2))
    for head in (request.partition(b"\r\n\r\n")[0] for request in seen):
        assert head.startswith(b"POST /v1/messages HTTP/1.1\r\n")
        assert head.count(b"x-api-key: " + (key or "caller").encode()) == 1
        assert head.count(b"anthropic-version: 2023-06-01") == 1
        assert b"authorization" not in head
        assert b"openai-organization" not in head
    assert one.usage == two.usage == Usage(input_tokens=100, output_tokens=20, cache_read=80, cache_write=5)


async def test_a_responses_client_on_a_chat_engine() -> None:
    tools: list[Any] = [{"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}]
    async with FakeEngine(lambda _: CALLING) as engine, serving(engine) as served, served.client() as client:
        response = await client.responses.create(model="m", input="weather?", tools=tools)
        assert response.output_text == "Let me look."
        async with client.responses.stream(model="m", input="weather?", tools=tools) as events:
            assert [item.type for item in (await events.get_final_response()).output] == ["message", "function_call"]
        (_, one), (_, two) = calls_of(await served.spans(calls=2))
    assert one.tool_calls == two.tool_calls == (ToolCallRef("functions.weather:0", "weather"),)
    assert two.first_token is not None


async def test_embeddings_pass_and_are_a_look_up_of_the_task_that_is_named() -> None:
    seen: list[bytes] = []
    vectors = (
        b'{"object":"list","model":"e","data":[{"index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":2}, "odd":1}'
    )
    async with raw_engine(whole(vectors), seen=seen) as engine, serving(engine) as served:
        answer = await served.ask(post("/v1/embeddings", b'{"model":"e","input":"hi"}', "x-headway-task: t1\r\n"))
        (span,) = await served.stored(1)
        page = await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
    assert answer.body == vectors
    assert seen[0].startswith(b"POST /v1/embeddings HTTP/1.1\r\n")
    assert (span.task, span.name, span.work) == ("t1", "embeddings e", Retrieval(source="e"))
    assert (
        b'gen_ai_client_token_usage_sum{gen_ai_request_model="e",replica="r0",gen_ai_token_type="input"} 2' in page.body
    )


async def test_tokens_are_counted_by_the_engine_or_by_asking_for_one_and_are_no_call_of_a_task() -> None:
    async with raw_engine(whole(b'{"input_tokens":9}')) as native, FakeEngine() as engine:
        replicas = [speaking(native, *MESSAGES_ENGINE)], [speaking(engine, "openai-chat")]
        for (replica,), count in zip(replicas, (9, 3), strict=True):
            async with serving(replica) as served, claude(served) as client:
                raw = await client.messages.with_raw_response.count_tokens(model="m", messages=QUESTION)
                assert (await raw.parse()).input_tokens == count
                assert "x-headway-task" not in raw.headers
                await served.ask(post("/v1/embeddings", b"{}"))  # it fails, and is recorded after the count was not
                assert [span.name for span in await served.stored(1)] == ["embeddings unknown"]
    assert engine.requests[0]["max_completion_tokens"] == 1


async def test_errors_come_in_the_callers_dialect_whoever_made_them() -> None:
    refused = Reply(status=429, error="slow down", headers={"retry-after": "3"})
    async with FakeEngine(lambda _: refused) as engine, serving(engine) as served, claude(served) as client:
        with pytest.raises(anthropic.RateLimitError, match="slow down") as limited:
            await client.messages.create(model="m", max_tokens=5, messages=QUESTION)
        assert limited.value.response.headers["retry-after"] == "3"
        with pytest.raises(anthropic.BadRequestError, match="`messages` is empty"):
            await client.messages.create(model="m", max_tokens=5, messages=[])
        with pytest.raises(anthropic.BadRequestError, match="web_search"):
            await client.messages.create(
                model="m",
                max_tokens=5,
                messages=QUESTION,
                tools=[{"type": "web_search_20250305", "name": "web_search"}],
            )
    async with serving(limits=Limits(body_bytes=100)) as served, claude(served) as client:
        with pytest.raises(anthropic.APIStatusError, match="limit of 100"):
            await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x" * 200}])
        with pytest.raises(anthropic.InternalServerError, match="replica"):
            await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}])
        (first, _), (second, _) = calls_of(await served.spans(calls=2))
    assert (first.error, second.error) == ("body_too_large", "no_replica")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(chunks=("a", "b"), fault="close_mid_stream"), "upstream_closed"),
        (Reply(chunks=("a", "b"), fault="error_event"), "upstream_error_event"),
        (Reply(chunks=("a", "b"), fault="malformed_json"), "upstream_malformed"),
        (Reply(chunks=("a", "b"), fault="oversize_event"), "upstream_oversize"),
    ],
)
async def test_a_translated_stream_that_breaks_off_ends_in_the_callers_own_error(reply: Reply, error: str) -> None:
    limits = Limits(response_bytes=100_000)
    async with (
        FakeEngine(lambda _: reply) as engine,
        serving(engine, limits=limits) as served,
        claude(served) as client,
    ):
        with pytest.raises(anthropic.APIStatusError):
            await say(client, True, QUESTION)  # noqa: FBT003 - streams
        assert (await served.call())[0].error == error


@pytest.mark.parametrize("fault", ["malformed_json", "oversize_event"])
async def test_a_translated_answer_that_is_none_is_the_callers_own_error(fault: Any) -> None:  # noqa: ANN401 - a Fault
    reply, limits = Reply(content="a", fault=fault), Limits(response_bytes=100_000)
    async with (
        FakeEngine(lambda _: reply) as engine,
        serving(engine, limits=limits) as served,
        claude(served) as client,
    ):
        with pytest.raises(anthropic.InternalServerError):
            await say(client, False, QUESTION)  # noqa: FBT003 - streams not
        assert (await served.call())[0].error == {"malformed_json": "upstream_malformed"}.get(
            fault, "upstream_oversize"
        )


async def test_a_client_that_leaves_a_translated_stream_cuts_the_engine_off() -> None:
    reply = Reply(chunks=("a",) * 100, gate=asyncio.Event())
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served:
        async with served.connect() as (_, writer):
            body = {"model": "m", "max_tokens": 5, "stream": True, "messages": QUESTION}
            writer.write(post("/v1/messages", encode(body)))
            await engine.until(lambda: engine.active == 1)
        await engine.wait_cancelled()
        assert (await served.call())[0].error == "client_gone"


async def test_replicas_that_cannot_serve_a_dialect_are_passed_over_or_said_to_be_deaf() -> None:
    body = b'{"model":"m","input":"hi"}'
    async with FakeEngine() as engine, raw_engine(whole(b"{}")) as vectors:
        deaf = speaking(engine, *MESSAGES_ENGINE, name="deaf")
        async with serving(deaf, speaking(vectors, "openai-embeddings", name="r1")) as served:
            answer = await served.ask(post("/v1/embeddings", body))
            assert (answer.status, answer.headers["x-headway-replica"]) == (200, "r1")
        async with serving(deaf) as served:
            answer = await served.ask(post("/v1/embeddings", body))
    assert (answer.status, answer.error["code"]) == (404, "dialect_not_served")
    assert "deaf" in answer.error["message"]


async def test_each_dialects_clients_list_the_models() -> None:
    listed = b'{"data":[{"id":"claude-x","type":"model","display_name":"X","created_at":"2026-01-01T00:00:00Z"}]}'
    seen: list[bytes] = []
    async with FakeEngine(models=("fake",)) as engine, raw_engine(whole(listed), whole(listed), seen=seen) as provider:
        replicas = speaking(engine, "openai-chat"), speaking(provider, *MESSAGES_ENGINE, name="r1", key="secret")
        async with serving(*replicas) as served:
            async with claude(served) as client:
                assert {model.id async for model in client.models.list()} == {"fake", "claude-x"}
            async with served.client() as other:
                assert [model.object async for model in other.models.list()] == ["model", "model"]
    assert b"x-api-key: secret\r\n" in seen[0]


async def test_what_is_here_is_told_where_there_is_nothing() -> None:
    async with serving() as served:
        answer: Raw = await served.ask(b"GET /v1/nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        wrong: Raw = await served.ask(b"GET /v1/messages HTTP/1.1\r\nhost: x\r\n\r\n")
    assert "POST /v1/messages/count_tokens" in answer.error["message"]
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert json.loads(wrong.body)["type"] == "error"


async def test_without_observation_translations_are_served_all_the_same() -> None:
    async with FakeEngine() as engine, serving(engine, observed=False) as served, claude(served) as client:
        assert (await say(client, True, QUESTION)).stop_reason == "end_turn"  # noqa: FBT003 - streams
    async with serving(speaking(engine, *MESSAGES_ENGINE), observed=False) as served, served.client() as client:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="m", messages=QUESTION)
