"""What is exported as OTLP is imported as it was, as far as OTLP has names for it."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from importing import document, read
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headway.core.money import MicroUsd
from headway.core.span import ErrorType, HumanWait, ModelCall, Retrieval, Span, Step, ToolCallRef, ToolUse, Work
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.export.otlp import to_otlp
from headway.trace.sources.otlp import Otlp

TASK = TaskId("5b8efff798038103d269b633813fc60c")
AT = 1_790_000_000.0
ROOT, CALL, TOOL = (SpanId(f"{n:016x}") for n in (1, 2, 3))

_COUNTS = st.none() | st.integers(1, 10**6)
_WORDS = st.sampled_from(["m", "gpt-4.1", "search the web", "ä b", "x.tool"])


def _span(own: SpanId, name: str, start: float, end: float | None, work: Work, **fields: object) -> Span:
    parent = None if own == ROOT else ROOT
    return Span(task=TASK, id=own, parent=parent, name=name, start=start, end=end, work=work, **fields)  # type: ignore[arg-type]


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
