"""One call through a real gateway: what is relayed, what is recorded, and how it ends when somebody leaves."""

import asyncio
import json
import re
from typing import Any

import pytest
from serving import QUESTION, chat, raw_engine, read_answer, serving, streamed, whole

from headway.core.clock import VirtualClock
from headway.core.config import Recording
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import HumanWait, ModelCall, Span, ToolCallRef, ToolUse
from headway.core.task import Identity
from headway.core.usage import EngineTimings, Usage
from headway.gateway.fake import FakeEngine, Reply, ToolCall
from headway.policy.identify import CallAnswered, CallFailed, CallOpening, Identifier
from headway.policy.route import RouteDone, RouteEvent, RouteSent
from headway.policy.routing.least_loaded import LeastLoaded

EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"odd":[1,{"a":null}]}\n\n'


async def test_a_whole_answer_is_relayed_byte_for_byte() -> None:
    odd = b'{ "id":1, "unknown" : {"deep": [1.50, null]}, "choices":[], "utf":"\xc3\xa9" }\n'
    async with raw_engine(whole(odd, b"x-vendor: 7\r\nx-vendor: 8\r\n")) as engine, serving(engine) as served:
        raw = await served.raw(chat("connection: close\r\n"))
    head, _, body = raw.partition(b"\r\n\r\n")
    assert body == odd
    assert b"x-vendor: 7\r\nx-vendor: 8\r\n" in head
    assert b"x-headway-replica: r0" in head


async def test_a_stream_is_relayed_byte_for_byte() -> None:
    odd = b": hello\n\nevent: x\r\ndata: {}\r\n\r\n" + EVENT + b"data: [DONE]\n\n" + b": no end"
    async with raw_engine(streamed(odd)) as engine, serving(engine) as served:
        _, _, body = (await served.raw(chat("", version="1.0", stream=True))).partition(b"\r\n\r\n")
    assert body == odd


async def test_a_request_is_sent_on_byte_for_byte() -> None:
    seen: list[bytes] = []
    body = b'{"model":"m" , "messages":[ {"role":"user","content":"\\u00e9","odd":1} ],"seed":1.0,"unknown":{"a":[]}}'
    request = (
        b"POST /v1/chat/completions?api-version=1 HTTP/1.1\r\nHost: gate.internal\r\nAuthorization: Bearer caller\r\n"
        b"X-Custom: a\r\nx-custom: b\r\nConnection: x-hop\r\nX-Hop: 1\r\nTE: trailers\r\nAccept-Encoding: gzip\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    async with raw_engine(whole(b"{}"), seen=seen) as engine, serving(engine) as served:
        await served.ask(request + body)
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    assert sent == body
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions HTTP/1.1"
    assert b"host: " + engine.url.removeprefix("http://").removesuffix("/v1").encode() in lines
    assert b"authorization: Bearer caller" in lines
    assert [line for line in lines if line.startswith(b"x-custom")] == [b"x-custom: a", b"x-custom: b"]
    assert b"accept-encoding: identity" in lines
    assert not re.search(rb"x-hop|\nte:|gzip|gate\.internal", head)


async def test_a_replicas_own_key_takes_the_place_of_the_callers() -> None:
    seen: list[bytes] = []
    async with raw_engine(whole(b"{}"), seen=seen) as engine:
        keyed = Replica(id=engine.id, url=engine.url, api_key="secret")
        async with serving(keyed) as served:
            answer = await served.ask(chat("authorization: Bearer caller\r\n"))
            span, _ = await served.call()
    assert seen[0].count(b"authorization: ") == 1
    assert b"authorization: Bearer secret\r\n" in seen[0]
    assert "secret" not in repr(answer) + repr(span) + repr(keyed)


async def test_the_record_of_a_streamed_call() -> None:
    timings = EngineTimings(
        prefill_tokens=12, prefill_seconds=0.25, decode_tokens=3, decode_seconds=0.1, cached_tokens=30
    )
    reply = Reply(chunks=("a", "b", "c"), timings=timings, report_usage="never")
    async with FakeEngine(lambda _: reply) as engine, serving(engine) as served:
        await served.raw(chat("connection: close\r\n", stream=True))
        span, call = await served.call()
    assert span.name == "chat m"
    assert span.error is None
    assert call.sent is not None
    assert call.first_token is not None
    assert call.last_token is not None
    assert span.end is not None
    assert span.start <= call.sent <= call.first_token <= call.last_token <= span.end
    assert call.first_visible == call.first_token
    assert call.itl is not None
    assert call.itl.count == 2
    assert call.usage == Usage(input_tokens=42, output_tokens=3, cache_read=30)
    assert call.engine == timings
    assert (call.finish_reason, call.attempts, call.replica, call.stream) == ("stop", 1, "r0", True)
    assert call.route is not None
    assert (call.route.policy, call.route.winner) == ("least-loaded", "r0")
    assert call.identity is not None
    assert call.identity.opens_task
    assert span.text is None
    assert call.cost is None


async def test_a_stream_without_usage_leaves_the_tokens_unknown() -> None:
    async with FakeEngine(lambda _: Reply(content="x", report_usage="never")) as engine, serving(engine) as served:
        await served.raw(chat("connection: close\r\n", stream=True))
        _, call = await served.call()
    assert call.usage == Usage()
    assert call.finish_reason == "stop"


async def test_the_record_of_a_whole_answer_has_no_token_times() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await served.ask(chat())
        span, call = await served.call()
    assert (call.first_token, call.itl, call.stream) == (None, None, False)
    assert call.usage == Usage(input_tokens=3, output_tokens=4, cache_read=0)
    assert span.session is not None


@pytest.mark.parametrize("stream", [False, True])
async def test_text_is_kept_only_where_it_is_asked_for(stream: bool) -> None:
    async with FakeEngine() as engine, serving(engine, recording=Recording(keep_text=True)) as served:
        await served.raw(chat("connection: close\r\n", stream=stream))
        span, _ = await served.call()
    assert span.text is not None
    prompt, answer = span.text
    assert json.loads(prompt) == QUESTION
    assert answer == "echo: one two three"


async def test_tool_time_is_from_the_answer_that_asked_to_the_request_that_brings_the_result() -> None:
    def script(body: dict[str, Any]) -> Reply:
        asked = any(message["role"] == "tool" for message in body["messages"])
        return Reply(content="done") if asked else Reply(tool_calls=(ToolCall("c1", "search", '{"q":1}'),))

    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q":1}'}}
    history = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    async with FakeEngine(script) as engine, serving(engine) as served, served.connect() as (reader, writer):
        for messages in (QUESTION, history):
            writer.write(chat(messages=messages))
            await read_answer(reader)
        spans = await served.spans(calls=2)
    first, second = calls_of(spans)
    (tool,) = [span for span in spans if isinstance(span.work, ToolUse)]
    assert tool.work == ToolUse(name="search", call_id="c1", issued_by=first.id, inferred=True, failed=None)
    assert tool.name == "execute_tool search"
    assert (tool.start, tool.end) == (first.end, second.start)
    assert tool.task == first.task == second.task
    assert isinstance(first.work, ModelCall)
    assert first.work.tool_calls == (ToolCallRef("c1", "search"),)


async def test_the_wait_for_a_person_lies_before_the_next_task() -> None:
    history = [
        *QUESTION,
        {"role": "assistant", "content": "echo: one two three"},
        {"role": "user", "content": "and now?"},
    ]
    clock = VirtualClock(1000.0)
    async with (
        FakeEngine() as engine,
        serving(engine, clock=clock) as served,
        served.connect() as (reader, writer),
    ):
        for messages in (QUESTION, history):
            writer.write(chat(messages=messages))
            await read_answer(reader)
            clock.advance(30)
        spans = await served.spans(calls=2)
    first, second = calls_of(spans)
    (wait,) = [span for span in spans if isinstance(span.work, HumanWait)]
    assert second.task != first.task
    assert wait.session == second.session == first.session
    assert wait.task == second.task
    assert (wait.start, wait.end) == (1000, 1030)


def calls_of(spans: list[Span]) -> list[Span]:
    return sorted((span for span in spans if isinstance(span.work, ModelCall)), key=lambda span: span.start)


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_the_callers_trace_goes_on_below_the_calls_span() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        answer = await served.ask(chat(f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\ntracestate: v=1\r\n"))
        span, _ = await served.call()
    assert engine.headers[0]["traceparent"] == f"00-{TRACE}-{span.id}-01"
    assert engine.headers[0]["tracestate"] == "v=1"
    assert (span.task, span.parent) == (TRACE, "00f067aa0ba902b7")
    assert answer.headers["x-headway-task"] == TRACE


async def test_a_call_without_a_trace_gets_one_named_by_its_task() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await served.ask(chat())
        span, _ = await served.call()
    assert engine.headers[0]["traceparent"] == f"00-{span.task}-{span.id}-01"


async def test_unobserved_the_callers_trace_passes_untouched_and_nothing_is_written() -> None:
    trace = f"00-{TRACE}-00f067aa0ba902b7-01"
    async with FakeEngine() as engine, serving(engine, observed=False) as served:
        answer = await served.ask(chat(f"traceparent: {trace}\r\n"))
        assert await served.spans(calls=0) == []
    assert engine.headers[0]["traceparent"] == trace
    assert "x-headway-task" not in answer.headers


async def test_an_idle_connection_that_the_engine_closed_is_replaced_without_a_word() -> None:
    seen: list[bytes] = []
    answers = (whole(b'{"n":1}'), b"", whole(b'{"n":2}'))
    async with (
        raw_engine(*answers, seen=seen) as engine,
        serving(engine) as served,
        served.connect() as (reader, writer),
    ):
        for number in (1, 2):
            writer.write(chat())
            assert (await read_answer(reader)).body == b'{"n":%d}' % number
        last = calls_of(await served.spans(calls=2))[-1]
    assert len(seen) == 3
    assert isinstance(last.work, ModelCall)
    assert last.work.attempts == 2


async def test_a_connection_that_dies_later_may_have_been_at_work_and_is_not_replaced() -> None:
    clock = VirtualClock(1000.0)
    answers = (whole(b'{"n":1}'), b"", whole(b'{"n":2}'))

    class Slow(Identifier):
        """Time passes between sending and the engine's hanging up."""

        def decide(self, opening: CallOpening, now: float) -> Identity:
            asyncio.get_running_loop().call_soon(clock.advance, 1.0)
            return super().decide(opening, now)

    async with (
        raw_engine(*answers) as engine,
        serving(engine, clock=clock, identifier=Slow(lambda: "0" * 32)) as served,
        served.connect() as (reader, writer),
    ):
        writer.write(chat())
        assert (await read_answer(reader)).status == 200
        writer.write(chat())
        answer = await read_answer(reader)
        assert (answer.status, answer.error["code"]) == (502, "upstream_closed")


class Breaking(Identifier):
    """Identity with a bug."""

    def decide(self, opening: CallOpening, now: float) -> Identity:
        raise RuntimeError(f"said in confidence: {opening.messages!r}", now)


async def test_a_bug_in_identity_harms_no_request(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeEngine() as engine, serving(engine, identifier=Breaking(lambda: "0" * 32)) as served:
        for _ in range(2):
            assert (await served.ask(chat())).status == 200
        spans = await served.spans(calls=2)
        assert served.gateway.journal.faults == 2
        page = await served.ask(b"GET /metrics HTTP/1.1\r\n\r\n")
        served.gateway.journal.faults = 0
    assert b"headway_observation_faults_total 2\n" in page.body
    assert "RuntimeError" in caplog.text
    assert "role" not in caplog.text  # of the messages that the exception names
    assert len({span.task for span in spans}) == 2
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


class Noting(Identifier):
    """Identity that notes what it is told."""

    def __init__(self) -> None:
        super().__init__(lambda: "1" * 32)
        self.openings: list[CallOpening] = []
        self.events: list[CallAnswered | CallFailed] = []

    def decide(self, opening: CallOpening, now: float) -> Identity:
        self.openings.append(opening)
        return super().decide(opening, now)

    def observe(self, event: CallAnswered | CallFailed, now: float) -> None:
        self.events.append(event)
        super().observe(event, now)


async def test_identity_is_told_what_was_asked_and_how_it_ended() -> None:
    identifier = Noting()
    replies = iter([Reply(content="hello"), Reply(status=429)])
    headers = "x-session-id: s\r\nauthorization: Bearer secret\r\ncookie: c\r\n"
    async with FakeEngine(lambda _: next(replies)) as engine, serving(engine, identifier=identifier) as served:
        for _ in range(2):
            await served.ask(chat(headers, tools=[], prompt_cache_key="k"))
    opening = identifier.openings[0]
    assert json.loads(opening.messages) == QUESTION
    assert (opening.model, opening.tools, opening.body_session) == ("m", b"[]", "k")
    assert opening.headers == {"x-session-id": "s"}
    answered, failed = identifier.events
    assert isinstance(answered, CallAnswered)
    assert (answered.span, answered.content, answered.finish_reason) == (opening.span, "hello", "stop")
    assert isinstance(failed, CallFailed)


class Watching(LeastLoaded):
    """Routing that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[RouteEvent] = []

    def observe(self, event: RouteEvent) -> None:
        self.events.append(event)


async def test_the_routing_policy_is_told_of_every_call_and_its_end() -> None:
    policy = Watching()
    async with FakeEngine() as down, FakeEngine() as up, serving(down, up, policy=policy) as served:
        await down.go_down()
        await served.ask(chat())
        span, _ = await served.call()
    r0, r1 = ReplicaId("r0"), ReplicaId("r1")
    assert policy.events == [
        RouteDone(replica=r0, task=span.task, failed=True, unserved=True),
        RouteSent(replica=r1, task=span.task),
        RouteDone(replica=r1, task=span.task, failed=False),
    ]


async def test_calls_are_spread_and_counted_while_they_run() -> None:
    gate = asyncio.Event()
    async with FakeEngine(lambda _: Reply(content="x", gate=gate)) as engine, serving(engine, engine) as served:
        asked = [asyncio.create_task(served.ask(chat())) for _ in range(4)]
        await engine.until(lambda: engine.active == 4)
        assert [load.in_flight for load in served.gateway.fleet.view().loads] == [2, 2]
        gate.set()
        assert {answer.headers["x-headway-replica"] for answer in await asyncio.gather(*asked)} == {"r0", "r1"}


async def test_a_compressed_stream_is_passed_on_unread() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 6\r\n\r\n"
    async with raw_engine(head + b"\x1f\x8b\x00\n\n\x01") as engine, serving(engine) as served:
        raw = await served.raw(chat(version="1.0", stream=True))
        span, call = await served.call()
    assert raw.endswith(b"\r\n\r\n\x1f\x8b\x00\n\n\x01")
    assert (span.error, call.usage) == (None, Usage())


@pytest.mark.parametrize(("told", "kept"), [("0", 0), ("2", 2), (None, None), ("many", None)])
async def test_a_callers_own_count_of_retries_is_kept(told: str | None, kept: int | None) -> None:
    header = "" if told is None else f"x-stainless-retry-count: {told}\r\n"
    async with raw_engine(whole(b"{}")) as engine, serving(engine) as served:
        await served.raw(chat(f"{header}connection: close\r\n"))
        _, call = await served.call()
    assert call.sent_before == kept
