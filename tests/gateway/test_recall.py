"""Calls that pass the cache: real clients before a real gateway and an engine that counts what it is asked."""

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from keeping import keeping
from serving import QUESTION, Served, chat, raw_engine, serving, whole

from headway.core.fleet import Replica, ReplicaId
from headway.core.money import MicroUsd, Price
from headway.core.span import ModelCall, Span
from headway.core.usage import Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.gateway.tariff import Tariff
from headway.policy.cache.rules import CacheRule

PRICES = {"m": Price(input=1_000_000, output=2_000_000)}
"""1 micro-USD for a token read and 2 for one written."""


def calls_of(spans: list[Span]) -> list[tuple[Span, ModelCall]]:
    calls = [(span, span.work) for span in spans if isinstance(span.work, ModelCall)]
    return sorted(calls, key=lambda call: call[0].start)


async def figure(served: Served, name: str) -> float:
    """A figure of the page of metrics; 0 where it is not on it."""
    page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body.decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))


async def test_the_same_question_is_asked_once() -> None:
    tariff = Tariff(PRICES, frozenset[str]())
    async with FakeEngine() as engine, serving(engine, cache=keeping(), tariff=tariff) as served:
        async with served.client() as client:
            first = await client.chat.completions.create(model="m", messages=QUESTION)
            raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
        second = raw.parse()
        (_, made), (span, given) = calls_of(await served.spans(2))
        hits = await figure(served, 'headway_cache_hits_total{rule="all",source="memory"}')
        saved = await figure(served, "headway_cache_saved_usd_total")
        counted = await figure(served, "gen_ai_client_token_usage_count")
    assert second == first
    assert len(engine.requests) == 1
    assert raw.headers["x-headway-cache"] == "hit"
    assert raw.headers["age"] == "0"
    assert raw.headers["x-headway-task"] == span.task
    assert made.given_again is None
    assert (given.replica, given.attempts, given.sent, given.cost) == (None, 0, None, 0)
    assert (given.usage.input_tokens, given.usage.output_tokens) == (0, 0)
    assert given.finish_reason == "stop"
    assert span.error is None
    assert given.given_again is not None
    assert given.given_again.source == "memory"
    # three words asked, "echo:" and those three answered: 3 + 2 * 4 micro-USD
    assert given.given_again.usage == Usage(input_tokens=3, output_tokens=4, cache_read=0)
    assert given.given_again.cost == MicroUsd(11)
    assert given.route is not None
    assert given.route.reason == "answered from the cache: the same question was answered 0 s ago"
    assert hits == 1
    assert saved == pytest.approx(11e-6)
    assert counted == 2, "input and output of the one call that an engine was asked"


async def test_a_stream_is_given_again_as_the_same_stream() -> None:
    async with FakeEngine() as engine, serving(engine, cache=keeping()) as served:
        async with served.client() as client:
            streams: list[list[Any]] = []
            for _ in range(2):
                stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
                streams.append([chunk async for chunk in stream])
            at_once = await client.chat.completions.create(model="m", messages=QUESTION)
        (_, made), (_, given), _ = calls_of(await served.spans(3))
    assert streams[0] == streams[1]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streams[1]) == "echo: one two three"
    assert len(engine.requests) == 2, "what was streamed is no answer to a question for all at once"
    assert at_once.choices[0].message.content == "echo: one two three"
    assert made.first_token is not None
    assert given.first_token is None
    assert given.stream is True
    assert given.given_again is not None
    assert given.given_again.usage.output_tokens == 4, (
        "the engine was asked for its usage, and the client was not shown"
    )


async def test_nothing_is_kept_without_a_rule_for_it() -> None:
    other = CacheRule(name="other", models=("other",))
    async with FakeEngine() as engine, serving(engine, cache=keeping(other)) as served:
        async with served.client() as client:
            for _ in range(2):
                await client.chat.completions.create(model="m", messages=QUESTION)
        (_, one), (_, two) = calls_of(await served.spans(2))
    assert len(engine.requests) == 2
    assert one.given_again is two.given_again is None


async def test_equal_calls_at_one_time_are_one_call() -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="because", gate=gate)) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        asking = [asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION)) for _ in range(5)]
        await until_waiting(served, 4)
        gate.set()
        answers = await asyncio.gather(*asking)
        calls = calls_of(await served.spans(5))
    assert len(engine.requests) == 1
    assert {answer.choices[0].message.content for answer in answers} == {"because"}
    waited = [call for _, call in calls if call.given_again is not None]
    assert [call.given_again.source for call in waited if call.given_again] == ["flight"] * 4
    assert all(call.queued for call in waited), "what they waited for another's call was waiting in the gateway"


async def until_waiting(served: Served, count: int) -> None:
    """Wait until so many wait for another's answer."""
    cache = served.gateway.cache
    assert cache is not None
    async with asyncio.timeout(10):
        while cache.report().memory.waiters < count:  # noqa: ASYNC110 - what is waited for is another connection's
            await asyncio.sleep(0)


async def test_when_who_makes_the_call_leaves_the_next_makes_it() -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    served_by = iter(gates)
    async with (
        FakeEngine(lambda _: Reply(content="because", gate=next(served_by))) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        first = asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION))
        await engine.until(lambda: len(engine.requests) == 1)
        others = [asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION)) for _ in range(2)]
        await until_waiting(served, 2)
        first.cancel()
        await engine.wait_cancelled()
        await engine.until(lambda: len(engine.requests) == 2)
        gates[1].set()
        answers = await asyncio.gather(*others)
        calls = calls_of(await served.spans(3))
    assert [answer.choices[0].message.content for answer in answers] == ["because"] * 2
    assert len(engine.requests) == 2
    assert sorted(span.error or "ok" for span, _ in calls) == ["client_gone", "ok", "ok"]


async def test_one_that_waits_may_leave_and_nobody_else_minds() -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="because", gate=gate)) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        leads = asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION))
        await engine.until(lambda: len(engine.requests) == 1)
        leaves = asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION))
        await until_waiting(served, 1)
        leaves.cancel()
        (gone, call) = await served.call()
        gate.set()
        assert (await leads).choices[0].message.content == "because"
    assert gone.error == "client_gone"
    assert call.given_again is None
    assert len(engine.requests) == 1


async def test_refused_requests_are_all_refused_at_once_and_failures_one_by_one() -> None:
    gate = asyncio.Event()
    replies = iter([Reply(status=400, gate=gate), *[Reply(status=400)] * 3])
    async with (
        FakeEngine(lambda _: next(replies)) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        asking = [asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION)) for _ in range(4)]
        await until_waiting(served, 3)
        gate.set()
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
        cache = served.gateway.cache
    assert all(isinstance(outcome, openai.BadRequestError) for outcome in outcomes)
    assert len(engine.requests) == 4
    assert cache is not None
    assert cache.report().memory.entries == 0


async def test_a_gateway_that_drains_lets_those_who_wait_have_their_answer() -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="because", gate=gate)) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        asking = [asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION)) for _ in range(3)]
        await until_waiting(served, 2)
        closing = asyncio.create_task(served.gateway.close(drain=10))
        gate.set()
        answers = await asyncio.gather(*asking)
        await closing
    assert [answer.choices[0].message.content for answer in answers] == ["because"] * 3
    assert len(engine.requests) == 1


async def test_a_gateway_that_is_stopped_tells_those_who_wait_why() -> None:
    async with (
        FakeEngine(lambda _: Reply(fault="stall_before")) as engine,
        serving(engine, cache=keeping()) as served,
        served.client() as client,
    ):
        asking = [asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION)) for _ in range(3)]
        await until_waiting(served, 2)
        await served.gateway.close(drain=0)
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert [getattr(outcome, "code", None) for outcome in outcomes] == ["shutdown"] * 3


async def test_who_has_waited_long_enough_makes_its_own_call() -> None:
    short = CacheRule(name="short", wait=0.01)
    gate = asyncio.Event()
    replies = iter([Reply(content="late", gate=gate), Reply(content="own")])
    async with (
        FakeEngine(lambda _: next(replies)) as engine,
        serving(engine, cache=keeping(short)) as served,
        served.client() as client,
    ):
        first = asyncio.create_task(client.chat.completions.create(model="m", messages=QUESTION))
        await engine.until(lambda: len(engine.requests) == 1)
        own = await client.chat.completions.create(model="m", messages=QUESTION)
        gate.set()
        late = await first
    assert own.choices[0].message.content == "own"
    assert late.choices[0].message.content == "late"


_BROKEN = [
    *((fault, False) for fault in ("close_before_answer", "reset_mid_stream", "malformed_json", "short_body")),
    *((fault, True) for fault in ("close_mid_stream", "reset_mid_stream", "malformed_sse", "error_event")),
]


@pytest.mark.parametrize(("fault", "stream"), _BROKEN)
async def test_what_broke_off_is_not_kept(fault: Any, stream: bool) -> None:  # noqa: ANN401 - a Fault
    async with (
        FakeEngine(lambda _: Reply(content="a b c d", fault=fault)) as engine,
        serving(engine, cache=keeping()) as served,
    ):
        async with served.connect() as (reader, writer):
            writer.write(chat("connection: close\r\n", stream=stream))
            await reader.read()
        (span, _) = await served.call()
        assert span.error is not None
        assert await figure(served, "headway_cache_entries") == 0
        assert await figure(served, "headway_cache_flights") == 0, "whoever asks next makes a call of its own"


async def test_a_client_that_hangs_up_after_the_mark_of_the_end_has_had_all_of_it() -> None:
    """Many read no further than that; the answer is as good as any."""
    events = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"}")
        asked += 1
        writer.write(head + b"%x\r\n%b\r\n" % (len(events), events))  # the last chunk never comes
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        engine = Replica(id=ReplicaId("r0"), url=f"http://127.0.0.1:{port}/v1")
        async with serving(engine, cache=keeping()) as served:
            async with served.connect() as (reader, writer):
                writer.write(chat(stream=True))
                await reader.readuntil(b"[DONE]")
            await served.spans(1)
            async with served.connect() as (reader, writer):
                writer.write(chat(stream=True))
                again = await reader.readuntil(b"[DONE]")
    assert b"x-headway-cache: hit" in again
    assert asked == 1


async def test_a_cached_answer_goes_on_the_tasks_history() -> None:
    """Its words and its tools' calls are issued as those of any other answer."""

    def script(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return Reply(content="done")
        return Reply(tool_calls=(ToolCall(id="call_1", name="look", arguments='{"at":"x"}'),))

    async with FakeEngine(script) as engine, serving(engine, cache=keeping()) as served, served.client() as client:
        tools: Any = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        for _ in range(2):
            asked = await client.chat.completions.create(model="m", messages=QUESTION, tools=tools)
            said: Any = asked.choices[0].message.model_dump(exclude_none=True)
            results: Any = {"role": "tool", "tool_call_id": "call_1", "content": "found"}
            await client.chat.completions.create(model="m", messages=[*QUESTION, said, results], tools=tools)
        calls = calls_of(await served.spans(4))
    assert len(engine.requests) == 2
    (one, first), (two, _), (three, third), (four, fourth) = calls
    assert one.task == two.task
    assert three.task == four.task != one.task
    assert third.given_again is not None
    assert fourth.given_again is not None
    assert third.tool_calls == first.tool_calls
    assert fourth.identity is not None
    assert fourth.identity.evidence == "tool_result"


async def test_callers_say_what_they_want_of_the_cache() -> None:
    async with FakeEngine() as engine, serving(engine, cache=keeping()) as served:
        for wish, asked in (("no-store", 1), ("no-store", 2), ("no-cache", 3), ("max-age=0", 3), ("no-cache", 4)):
            answer = await served.ask(chat(f"cache-control: {wish}\r\n"))
            assert answer.status == 200
            assert json.loads(answer.body)["choices"]
            assert len(engine.requests) == asked, wish


async def test_whose_own_deadline_passes_while_it_waits_is_told_and_the_others_wait_on() -> None:
    gate = asyncio.Event()
    async with (
        FakeEngine(lambda _: Reply(content="because", gate=gate)) as engine,
        serving(engine, cache=keeping()) as served,
    ):
        first = asyncio.create_task(served.ask(chat()))
        await engine.until(lambda: len(engine.requests) == 1)
        late = await served.ask(chat("x-headway-deadline: 0.05\r\n"))
        gate.set()
        assert b"because" in (await first).body
    assert (late.status, late.error["code"]) == (504, "deadline_exceeded")
    assert len(engine.requests) == 1


async def test_callers_of_other_dialects_have_their_answers_in_them() -> None:
    """Kept is what the caller was sent, so an answer that was translated is not translated again."""
    messages = CacheRule(name="messages", path="/v1/messages")
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    async with FakeEngine() as engine, serving(engine, cache=keeping(messages)) as served:
        url = served.url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0, http_client=http) as client:
            answers = [await client.messages.create(model="m", max_tokens=50, messages=QUESTION) for _ in range(2)]
            texts: list[str] = []
            for _ in range(2):
                async with client.messages.stream(model="m", max_tokens=50, messages=QUESTION) as stream:
                    texts.append("".join([text async for text in stream.text_stream]))
        chats = [await served.ask(chat()) for _ in range(2)]
        calls = calls_of(await served.spans(6))
    assert answers[0] == answers[1]
    assert [block.type for block in answers[1].content] == ["text"]
    assert texts == ["echo: one two three"] * 2
    assert [call.given_again is not None for _, call in calls] == [False, True, False, True, False, False]
    assert all("x-headway-cache" not in answer.headers for answer in chats), "no rule is for that path"
    assert len(engine.requests) == 4


async def test_vectors_are_given_again() -> None:
    vectors = CacheRule(name="vectors", path="/v1/embeddings")
    vector = b'{"object":"embedding","index":0,"embedding":[0.5]}'
    answer = b'{"object":"list","model":"m","data":[%b],"usage":{"prompt_tokens":3,"total_tokens":3}}' % vector
    seen: list[bytes] = []
    async with (
        raw_engine(whole(answer), seen=seen) as engine,
        serving(engine, cache=keeping(vectors)) as served,
        served.client() as client,
    ):
        got = [await client.embeddings.create(model="m", input="one two three") for _ in range(2)]
    assert got[0] == got[1]
    assert got[1].data[0].embedding == [0.5]
    assert len(seen) == 1
