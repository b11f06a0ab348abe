"""What is exported as OTLP is imported as it was, as far as OTLP has names for it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import document, read
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headway.core.money import MicroUsd
from headway.core.span import ErrorType, HumanWait, ModelCall, Retrieval, Span, Step, ToolCallRef, ToolUse, Work
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import EngineTimings, Usage
from headway.trace.anatomy import dissect
from headway.trace.export.otlp import to_otlp, to_otlp_protobuf
from headway.trace.phases import Phase
from headway.trace.sources.otel.marks import restored
from headway.trace.sources.otel.otlp import Otlp
from headway.wire.otlp import from_json
from headway.wire.otlp_protobuf import ProtobufReader

TASK = TaskId("5b8efff798038103d269b633813fc60c")
AT = 1_790_000_000.0
ROOT, CALL, TOOL = (SpanId(f"{n:016x}") for n in (1, 2, 3))

_COUNTS = st.none() | st.integers(1, 10**6)
_WORDS = st.sampled_from(["m", "gpt-4.1", "search the web", "ä b", "x.tool"])


def _span(own: SpanId, name: str, start: float, end: float | None, work: Work, **fields: object) -> Span:
    parent = None if own == ROOT else ROOT
    return Span(task=TASK, id=own, parent=parent, name=name, start=start, end=end, work=work, **fields)  # type: ignore[arg-type] - fields by name


@st.composite
def _calls(draw: st.DrawFn, start: float, *, tool: ToolCallRef | None) -> ModelCall:
    queued = draw(st.none() | st.floats(0.0, 1.0))
    read = draw(st.none() | st.integers(0, 400))
    return ModelCall(
        model=draw(_WORDS),
        provider=draw(st.sampled_from([None, "openai", "aws.bedrock"])),
        stream=draw(st.sampled_from([None, True, False])),
        queued=queued,
        sent=None if queued is None else start + queued,
        first_token=draw(st.none() | st.floats(0.01, 5.0).map(lambda after: start + after)),
        usage=Usage(
            input_tokens=draw(st.none() | st.integers(1000, 10**6)),
            output_tokens=draw(_COUNTS),
            cache_read=read,
            cache_write=draw(st.none() | st.integers(0, 400)),
            reasoning=draw(_COUNTS),
        ),
        finish_reason=draw(st.sampled_from([None, "stop", "tool_calls"])),
        attempts=draw(st.none() | st.integers(1, 5)),
        sent_before=draw(st.none() | st.integers(0, 3)),
        cost=draw(st.none() | st.integers(0, 10**9).map(MicroUsd)),
        tool_calls=() if tool is None else (tool,),
    )


@st.composite
def _tasks(draw: st.DrawFn) -> list[Span]:
    """An agent that calls a model, which calls a tool, and does some other things; in any order."""
    shared: dict[str, object] = {"session": SessionId("c1"), "host": draw(st.sampled_from([None, "h1"]))}
    start = draw(st.floats(AT, AT + 1))
    error = draw(st.sampled_from([None, ErrorType("timeout")]))
    ref = ToolCallRef("call_a", draw(_WORDS))
    call = draw(_calls(start, tool=ref))
    word = draw(st.sampled_from(["chat", "generate_content", "text_completion"]))
    failed = True if error else draw(st.sampled_from([None, False]))
    use = ToolUse(name=ref.name, call_id=ref.id, issued_by=CALL, failed=failed)
    source = draw(_WORDS)
    return [
        _span(ROOT, "invoke_agent a b", AT, draw(st.none() | st.just(AT + 30)), Step(agent="a b"), **shared),
        _span(CALL, f"{word} {call.model}", start, start + 6, call, error=error, **shared),
        _span(TOOL, f"execute_tool {ref.name}", AT + 8, AT + 9, use, error=error, **shared),
        _span(SpanId(f"{4:016x}"), f"retrieval {source}", AT + 9, AT + 10, Retrieval(source=source), **shared),
        _span(SpanId(f"{5:016x}"), "human_wait", AT + 10, AT + 12, HumanWait(), **shared),
        _span(SpanId(f"{6:016x}"), "stage one", AT + 12, AT + 13, Step(), awaited=draw(st.booleans()), **shared),
    ]


@settings(max_examples=100, deadline=None)
@given(_tasks())
def test_what_is_exported_is_imported_as_it_was(spans: list[Span]) -> None:
    (piece,), skips = read(Otlp(), document(to_otlp(spans)))
    assert not skips.all()
    assert list(piece.spans) == spans


def test_the_names_are_those_of_the_conventions() -> None:
    call = ModelCall(model="m", provider="openai", first_token=AT + 0.5, usage=Usage(input_tokens=9, cache_read=4))
    (group,) = json.loads(to_otlp([_span(CALL, "chat m", AT, AT + 1, call, error=ErrorType("timeout"))]))[
        "resourceSpans"
    ]
    (written,) = group["scopeSpans"][0]["spans"]
    assert (written["kind"], written["status"]) == (3, {"code": 2})
    assert {one["key"] for one in written["attributes"]} == {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.response.time_to_first_chunk",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "error.type",
    }


def test_several_messages_are_lines_of_a_file() -> None:
    lines = [to_otlp([_span(ROOT, "a", AT, AT + 1, Step())]), to_otlp([_span(CALL, "b", AT, AT + 1, Step())])]
    (piece,), _ = read(Otlp(), document(b"\n".join(lines)))
    assert [span.name for span in piece.spans] == ["a", "b"]


def test_a_span_without_a_time_cannot_be_carried() -> None:
    assert b"spanId" not in to_otlp([_span(ROOT, "a", 0.0, 0.0, Step())])


def test_other_tools_can_read_it() -> None:
    """Their JSON has base64 where OTLP's has hex, so only what is outside the ids is compared."""
    from google.protobuf.json_format import ParseDict  # noqa: PLC0415 - a second reader, for this alone

    document_ = json.loads(to_otlp([_span(ROOT, "invoke_agent a", AT, AT + 1, Step(agent="a"))]))
    request = ParseDict(document_, ExportTraceServiceRequest())
    written = request.resource_spans[0].scope_spans[0].spans[0]
    assert (written.name, written.start_time_unix_nano) == ("invoke_agent a", 1_790_000_000_000_000_000)


def _as_gateway_records() -> list[Span]:
    """Two turns, all marks taken: 0.25 s in our queue, 0.25 s in the engine's, then reading, writing and a hop."""
    spans: list[Span] = []
    for turn, name in enumerate(("first", "second")):
        at = AT + turn * 5.0
        timings = EngineTimings(prefill_tokens=9, prefill_seconds=0.5, decode_tokens=8, decode_seconds=1.5)
        work = ModelCall(
            model="m",
            stream=True,
            queued=0.25,
            sent=at + 0.5,
            first_token=at + 1.25,
            first_visible=at + 1.5 if turn else None,
            last_token=at + 2.75,
            usage=Usage(input_tokens=9, output_tokens=8, cache_read=0),
            engine=timings,
            attempts=1,
            tool_calls=() if turn else (ToolCallRef("c", "look"),),
        )
        spans.append(
            Span(task=TaskId("my task"), id=SpanId(name), parent=None, name="chat m", start=at, end=at + 3, work=work)
        )
    use = ToolUse(name="look", call_id="c", issued_by=SpanId("first"), inferred=True)
    looked = Span(
        task=TaskId("my task"),
        id=SpanId("t"),
        parent=None,
        name="execute_tool look",
        start=AT + 3,
        end=AT + 5,
        work=use,
    )
    return [*spans, looked]


def test_what_comes_back_has_the_same_anatomy() -> None:
    spans = _as_gateway_records()
    (piece,), _ = read(Otlp(), document(to_otlp(spans)))
    before, after = dissect(spans), dissect(piece.spans)
    assert before.phases == {
        Phase.HOP: pytest.approx(1.0),
        Phase.QUEUE: pytest.approx(1.0),
        Phase.PREFILL: pytest.approx(1.0),
        Phase.DECODE: pytest.approx(3.0),
        Phase.TOOL: pytest.approx(2.0),
    }
    assert after.phases == {phase: pytest.approx(seconds) for phase, seconds in before.phases.items()}
    assert [tile.phase for tile in after.path] == [tile.phase for tile in before.path]
    assert (after.e2e, after.n, after.usage, after.retries) == (before.e2e, before.n, before.usage, before.retries)
    assert after.task_ttft == before.task_ttft == 6.5
    assert [bar.slack for bar in after.bars] == [bar.slack for bar in before.bars]


def test_text_that_was_shown_before_tools_were_called_is_known_again() -> None:
    asks = ModelCall(
        model="m",
        stream=True,
        first_token=AT + 1,
        first_visible=AT + 2,
        shown=True,
        tool_calls=(ToolCallRef("a", "ls"), ToolCallRef("b", "never ran")),
    )
    answers = ModelCall(model="m", stream=True, first_token=AT + 6, first_visible=AT + 7)
    spans = [
        _span(ROOT, "invoke_agent a", AT, AT + 9, Step(agent="a")),
        _span(CALL, "chat m", AT, AT + 4, asks),
        _span(TOOL, "execute_tool ls", AT + 4, AT + 5, ToolUse(name="ls", call_id="a", issued_by=CALL, inferred=True)),
        _span(SpanId(f"{4:016x}"), "chat m", AT + 5, AT + 9, answers),
    ]
    (piece,), _ = read(Otlp(), document(to_otlp(spans)))
    assert dissect(spans).task_ttft == dissect(piece.spans).task_ttft == 2.0
    assert sorted(piece.spans, key=lambda span: span.start) == spans


def test_an_answer_is_none_where_it_asked_for_a_tool_that_never_ran() -> None:
    asks = ModelCall(
        model="m", stream=True, first_token=AT + 1, first_visible=AT + 2, tool_calls=(ToolCallRef("a", "x"),)
    )
    spans = [
        _span(ROOT, "invoke_agent a", AT, AT + 9, Step(agent="a")),
        _span(CALL, "chat m", AT, AT + 4, asks),
    ]
    (piece,), _ = read(Otlp(), document(to_otlp(spans)))
    assert dissect(spans).task_ttft is dissect(piece.spans).task_ttft is None


def test_ids_that_others_would_refuse_become_ones_that_they_take() -> None:
    (piece,), _ = read(Otlp(), document(line := to_otlp(_as_gateway_records())))
    written = [one for group in json.loads(line)["resourceSpans"] for one in group["scopeSpans"][0]["spans"]]
    assert {len(one["traceId"]) for one in written} == {32}
    assert all(len(one["spanId"]) == 16 and int(one["spanId"], 16) for one in written)
    tool = next(span.work for span in piece.spans if isinstance(span.work, ToolUse))
    first = min(piece.spans, key=lambda span: span.start)
    assert tool.issued_by == first.id


def test_marks_that_are_none_of_ours_change_nothing() -> None:
    call = ModelCall(model="m")
    assert all(restored(call, told) is call for told in ("[]", "{", 7, None, '{"sent": "x"}'))


@settings(max_examples=30, deadline=None)
@given(_tasks())
def test_protobuf_says_what_json_says(spans: list[Span]) -> None:
    assert ProtobufReader().read(to_otlp_protobuf(spans)).spans == from_json(to_otlp(spans)).spans


def test_a_trace_that_a_tenants_caller_named_goes_on_under_its_own_id() -> None:
    tagged = TaskId(f"{TASK}@0011223344556677")
    (span,) = from_json(
        to_otlp([Span(task=tagged, id=ROOT, parent=None, name="n", start=AT, end=None, work=Step())])
    ).spans
    assert span.trace == TASK
