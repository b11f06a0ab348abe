"""The receiver of spans, with OpenTelemetry's own exporter and with raw requests."""

import asyncio
import gzip
import json
from collections.abc import Callable

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import format_span_id, format_trace_id
from otlp_documents import TRACE, message, span
from otlp_messages import protobuf
from serving import QUESTION, Raw, Served, serving

from headway.core.config import Limits, Recording
from headway.core.span import ModelCall, Step, ToolUse
from headway.gateway.fake import FakeEngine
from headway.gateway.telemetry import UNPACKED
from headway.trace.anatomy import dissect
from headway.trace.sources.otel.inbox import IMPOSSIBLE
from headway.trace.sources.verdict import judge
from headway.wire.otlp import from_json

AGENT: dict[str, object] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
CHAT: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL: dict[str, object] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "t",
    "gen_ai.tool.call.id": "c1",
}


def post(body: bytes, kind: str = "application/json", *headers: str) -> bytes:
    lines = ["POST /v1/traces HTTP/1.1", "host: x", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


def _told(attributes: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in attributes.items()}


def agent_at_work(exporter: OTLPSpanExporter, work: Callable[[dict[str, str]], None]) -> str:
    """An instrumented agent; ``work`` is given the headers for what it calls. Returns its trace id."""
    provider = TracerProvider(resource=Resource({"service.name": "agent", "host.name": "h1"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("an.agent")
    with tracer.start_as_current_span("invoke_agent a", attributes=_told(AGENT)) as root:
        context = root.get_span_context()
        trace = format_trace_id(context.trace_id)
        work({"traceparent": f"00-{trace}-{format_span_id(context.span_id)}-01"})
        with tracer.start_as_current_span("execute_tool t", attributes=_told(TOOL)):
            pass
    provider.shutdown()
    return trace


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_an_instrumented_agents_spans_arrive(compression: Compression) -> None:
    async with serving() as served:
        url = f"http://127.0.0.1:{served.port}/v1/traces"
        exporter = OTLPSpanExporter(endpoint=url, compression=compression)
        trace = await asyncio.to_thread(agent_at_work, exporter, lambda _: None)
        root, tool = await served.stored(2)
        assert (root.task, root.name, root.work, root.host) == (trace, "invoke_agent a", Step(agent="a"), "h1")
        assert (tool.task, tool.parent) == (trace, root.id)
        assert isinstance(tool.work, ToolUse)
        assert (served.gateway.telemetry.received, served.gateway.telemetry.rejected) == (2, 0)


async def test_the_exporters_usual_setting_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{served.port}")
        await asyncio.to_thread(agent_at_work, OTLPSpanExporter(), lambda _: None)
        assert len(await served.stored(2)) == 2


async def test_an_agents_spans_and_the_gateways_own_are_one_task() -> None:
    async with FakeEngine() as engine, serving(engine) as served:

        def ask(headers: dict[str, str]) -> None:
            async def call() -> None:
                async with served.client() as client:
                    await client.chat.completions.create(model="m", messages=QUESTION, extra_headers=headers)

            asyncio.run_coroutine_threadsafe(call(), loop).result(10)

        loop = asyncio.get_running_loop()
        exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{served.port}/v1/traces")
        trace = await asyncio.to_thread(agent_at_work, exporter, ask)
        spans = await served.stored(3)
        assert {one.task for one in spans} == {trace}
        root, call, tool = spans
        assert isinstance(call.work, ModelCall)
        assert (call.parent, tool.parent) == (root.id, root.id)
        anatomy = dissect(spans)
        assert (anatomy.n, anatomy.calls) == (1, 1)
        assert anatomy.usage.output_tokens  # the gateway's count, in the agent's own trace


async def test_what_comes_later_tells_more_of_what_came_before() -> None:
    """Each span in a message of its own, the children first, as agents export those that take long."""
    async with serving() as served:
        children = [
            span(3, "POST", 0, 0.9, {"http.request.method": "POST"}, parent=2, kind=3),
            span(2, "chat m", 0, 1, CHAT, parent=1),
            span(4, "execute_tool t", 1, 2, TOOL, parent=1),
            span(1, "invoke_agent a", 0, 3, AGENT | {"gen_ai.conversation.id": "c1"}),
        ]
        for child in children:
            answer = await served.ask(post(message(child)))
            assert (answer.status, answer.body) == (200, b"{}")
        spans = {int(one.id, 16): one for one in await served.stored(4)}
        call, tool = spans[2].work, spans[4].work
        assert isinstance(call, ModelCall)
        assert isinstance(tool, ToolUse)
        assert (call.attempts, [ref.id for ref in call.tool_calls]) == (1, ["c1"])
        assert tool.issued_by == spans[2].id
        assert {one.session for one in spans.values()} == {"c1"}


async def test_protobuf_is_answered_in_protobuf() -> None:
    async with serving() as served:
        body = protobuf(*from_json(message(span(1, "work", 0, 1))).spans).SerializeToString()
        answer = await served.ask(post(body, "application/x-protobuf"))
        assert (answer.status, answer.headers["content-type"]) == (200, "application/x-protobuf")
        assert ExportTraceServiceResponse.FromString(answer.body) == ExportTraceServiceResponse()
        (one,) = await served.stored(1)
        assert (one.task, one.name) == (TRACE, "work")


async def test_what_was_mended_in_reading_is_told_of_the_task() -> None:
    bad = span(1, "chat m", 0, 1, CHAT | {"gen_ai.usage.input_tokens": -5})
    async with serving(FakeEngine()) as served:
        await served.raw(post(message(bad), "application/json", "connection: close"))
        stored = await served.stored(1)
    assert judge(stored, "any", "spans").remarks == (IMPOSSIBLE,)


async def test_what_is_no_span_is_counted_in_the_answer() -> None:
    async with serving() as served:
        nameless = span(3, "work", 0, 1) | {"traceId": "x"}
        untimed = span(2, "work", 0, 1) | {"startTimeUnixNano": "0"}
        wrong = span(4, "work", 0, 1) | {"kind": True}  # which costs the kind, not the span
        answer = await served.ask(post(message(span(1, "work", 0, 1), untimed, nameless, wrong)))
        assert (answer.status, json.loads(answer.body)["partialSuccess"]) == (
            200,
            {
                "rejectedSpans": "2",
                "errorMessage": "a span without a time of start: 1; a span without a valid trace id and span id: 1",
            },
        )
        assert len(await served.stored(2)) == 2
        assert served.gateway.telemetry.rejected == 2


async def refusal(served: Served, request: bytes, status: int) -> str:
    answer = await served.ask(request)
    assert answer.status == status
    body = json.loads(answer.body)
    return body["message"] if "message" in body else body["error"]["message"]


async def test_bodies_that_are_no_message_are_refused() -> None:
    async with serving() as served:
        for body in (b"", b"{", b"[]", b"\xff"):
            assert await refusal(served, post(body), 400)
        answer = await served.ask(post(b"\x0b\x0b", "application/x-protobuf"))
        assert (answer.status, answer.headers["content-type"]) == (400, "application/x-protobuf")
        assert b"This is not protobuf" in answer.body  # a google.rpc.Status
        assert served.gateway.telemetry.received == 0


@pytest.mark.parametrize("kind", ["text/plain", "", "application/grpc"])
async def test_other_types_of_body_are_refused(kind: str) -> None:
    async with serving() as served:
        told = await refusal(served, post(b"{}", kind), 415)
        assert "Send application/x-protobuf or application/json" in told


async def test_other_packings_are_refused() -> None:
    async with serving() as served:
        told = await refusal(served, post(b"{}", "application/json", "content-encoding: zstd"), 415)
        assert told == "The content-encoding is 'zstd'. Send gzip or none."


async def test_a_body_over_the_limit_is_refused_packed_or_not() -> None:
    async with serving(limits=Limits(body_bytes=1000)) as served:
        assert (await served.ask(post(b" " * 1001))).status == 413
        bomb = gzip.compress(b" " * (1000 * UNPACKED + 1))
        told = await refusal(served, post(bomb, "application/json", "content-encoding: gzip"), 413)
        assert told.startswith("Unpacked, the body is larger than 4,000 bytes.")


async def test_packed_bodies_may_be_of_several_parts_but_not_broken() -> None:
    async with serving() as served:
        whole = message(span(1, "work", 0, 1))
        parts = gzip.compress(whole[:50]) + gzip.compress(whole[50:])
        packed = "content-encoding: gzip"
        assert (await served.ask(post(parts, "application/json; charset=utf-8", packed))).status == 200
        assert "cut off" in await refusal(served, post(parts[:-9], "application/json", packed), 400)
        assert "not gzip" in await refusal(served, post(whole, "application/json", packed), 400)
        assert len(await served.stored(1)) == 1


async def test_a_gateway_that_keeps_nothing_takes_nothing() -> None:
    async with serving(recording=Recording(enabled=False)) as served:
        assert "records nothing" in await refusal(served, post(message(span(1, "work", 0, 1))), 501)


async def test_only_posts_are_answered() -> None:
    async with serving() as served:
        answer = await served.ask(b"GET /v1/traces HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_many_messages_at_once_are_all_read_or_told_to_come_again() -> None:
    async with serving() as served:

        async def send(number: int) -> Raw:
            return await served.ask(post(message(*(span(number * 100 + n, "work", 0, 1) for n in range(1, 60)))))

        answers = await asyncio.gather(*(send(number) for number in range(40)))
        assert {answer.status for answer in answers} <= {200, 503}
        assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status == 503)
        read = sum(answer.status == 200 for answer in answers)
        assert read
        assert len(await served.stored(read * 59)) == read * 59


async def test_what_a_client_sent_before_it_left_is_kept() -> None:
    async with serving() as served:
        async with served.connect() as (_, writer):
            writer.write(post(message(span(1, "work", 0, 1))))
            await writer.drain()
        assert len(await served.stored(1)) == 1


async def test_the_page_of_metrics_counts_them() -> None:
    async with serving() as served:
        await served.ask(post(message(span(1, "work", 0, 1), {**span(2, "work", 0, 1), "spanId": ""})))
        page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body.decode()
        assert 'headway_telemetry_spans_total{outcome="recorded"} 1' in page
        assert 'headway_telemetry_spans_total{outcome="rejected"} 1' in page
