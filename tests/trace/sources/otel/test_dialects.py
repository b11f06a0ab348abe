"""Seven dialects of one task, and the one set of spans that all of them mean."""

from typing import Final

import pytest
from importing import document, read, sample
from msgspec import structs

from headway.core.span import ModelCall, Span, Step, ToolCallRef, ToolUse, Work
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.sources.otel.otlp import Otlp

TASK: Final = TaskId("00000000000000000000000000000abc")
AT: Final = 1_790_000_000.0
"""When the task was asked."""
ROOT, FIRST, SEARCH, FETCH, LAST = (SpanId(f"{n:016x}") for n in (1, 2, 3, 4, 5))


def span(own: SpanId, name: str, start: float, end: float, work: Work) -> Span:
    """As the files have them: all but the root hang from it, one session, one host."""
    return Span(
        task=TASK,
        id=own,
        parent=None if own == ROOT else ROOT,
        name=name,
        start=start,
        end=end,
        work=work,
        session=SessionId("c1"),
        host="h1",
    )


def model_call(usage: Usage, ttft_at: float, finish: str, *tools: ToolCallRef) -> ModelCall:
    return ModelCall(
        model="m",
        provider="anthropic",
        stream=True,
        first_token=ttft_at,
        usage=usage,
        finish_reason=finish,
        tool_calls=tools,
    )


CANONICAL: Final = (
    span(ROOT, "invoke_agent a", 1790000000.0, 1790000006.0, Step(agent="a")),
    span(
        FIRST,
        "chat m",
        1790000000.1,
        1790000002.1,
        model_call(
            Usage(input_tokens=12000, output_tokens=180, cache_read=9000, cache_write=2000),
            1790000001.0,  # 0.9 s after its start
            "tool_use",
            ToolCallRef("call_a", "search"),
            ToolCallRef("call_b", "fetch"),
        ),
    ),
    span(
        SEARCH,
        "execute_tool search",
        1790000002.15,
        1790000003.15,
        ToolUse(name="search", call_id="call_a", issued_by=FIRST),
    ),
    span(
        FETCH,
        "execute_tool fetch",
        1790000002.16,
        1790000004.16,
        ToolUse(name="fetch", call_id="call_b", issued_by=FIRST),
    ),
    span(
        LAST,
        "chat m",
        1790000004.2,
        1790000005.9,
        model_call(
            Usage(input_tokens=13500, output_tokens=320, cache_read=12000, cache_write=1200),
            1790000004.8,  # 0.6 s after its start
            "end_turn",
        ),
    ),
)
"""The task as the fullest of the dialects, OTel 1.41, tells it."""

LACKS: Final[dict[str, frozenset[str]]] = {
    "otel_1.41": frozenset(),
    "genai_0.1.0": frozenset(),
    "otel_1.36": frozenset({"session", "stream", "ttft", "cache_read", "cache_write"}),
    "otel_1.26": frozenset({"session", "stream", "ttft", "cache_read", "cache_write", "finish", "call ids", "agent"}),
    "openinference": frozenset({"stream", "ttft", "finish"}),
    "traceloop_legacy": frozenset({"session", "ttft", "finish", "call ids"}),
    "vercel_legacy": frozenset({"session", "cache_write"}),
}
"""What each file does not say anywhere: unknown then, which is not the same as different."""


def without(canonical: Span, lacks: frozenset[str]) -> Span:
    """The span as far as a file tells it."""
    if "session" in lacks:
        canonical = structs.replace(canonical, session=None)
    match canonical.work:
        case ModelCall() as work:
            usage = structs.replace(
                work.usage, **{field: None for field in ("cache_read", "cache_write") if field in lacks}
            )
            fields = {"stream": "stream", "ttft": "first_token", "finish": "finish_reason"}
            work = structs.replace(work, usage=usage, **{fields[lack]: None for lack in lacks & fields.keys()})
            return structs.replace(
                canonical, work=structs.replace(work, tool_calls=()) if "call ids" in lacks else work
            )
        case ToolUse() as work if "call ids" in lacks:
            return structs.replace(canonical, work=structs.replace(work, call_id=None))
        case Step() if "agent" in lacks:  # OTel 1.26 had no agents: the span is called "agent", by whoever wrote it
            return structs.replace(canonical, name="agent", work=Step())
        case _:
            return canonical


@pytest.mark.parametrize("dialect", LACKS)
def test_seven_dialects_of_one_task_give_identical_spans(dialect: str) -> None:
    path = sample(f"traces/handmade/dialect_{dialect}.json")
    (piece,), skips = read(Otlp(), document(path.read_bytes()))
    expected = [without(one, LACKS[dialect]) for one in CANONICAL]
    assert sorted(piece.spans, key=lambda one: one.start) == expected
    assert piece.task == TASK
    assert piece.timing == "spans"
    assert not skips


def test_a_generation_without_tools_says_that_they_were_inferred() -> None:
    path = sample("traces/handmade/dialect_otel_1.26.json")
    (piece,), _ = read(Otlp(), document(path.read_bytes()))
    assert any("had no spans for tools" in remark for remark in piece.remarks)
