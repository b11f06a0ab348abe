"""Traces of the OpenAI Agents SDK, as its exporters write them, and the saved state of its runs."""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never, cast

import msgspec
from msgspec import Raw, Struct, structs

from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.trace.sources.digests import digest, task_id
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import NO_TIME, decode
from headway.trace.sources.fields.failures import failure
from headway.trace.sources.fields.identities import span_of, task_of
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.messages import Parts, messages
from headway.trace.sources.openai_agents.items import DECODER as ITEM
from headway.trace.sources.openai_agents.items import (
    AgentData,
    CustomData,
    FunctionData,
    GenerationData,
    GuardrailData,
    HandoffData,
    McpToolsData,
    ResponseData,
    SpanItem,
    SpeechData,
    SpeechGroupData,
    TraceItem,
    TranscriptionData,
)
from headway.trace.sources.openai_agents.state import DECODER as STATE
from headway.trace.sources.openai_agents.state import run_of
from headway.trace.sources.otel.attributes import Facts
from headway.trace.sources.otel.finish import finished
from headway.trace.sources.otel.genai import interpret
from headway.trace.sources.session.draft import first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otel import RawSpan

_NAME: Final = "openai-agents"
_NAMELESS: Final = "Spans of the Responses API do not name their model, so no price is known for their calls."


class _Page(Struct):
    data: list[Raw] | None = None
    version: str | None = msgspec.field(default=None, name="$schemaVersion")


_PAGE: Final = msgspec.json.Decoder(_Page)
_LISTED: Final = msgspec.json.Decoder(list[Raw])
_NO_SPANS: Final = "a record that is broken or holds no spans"


class OpenAIAgents:
    """Importer of what a trace processor of the SDK writes, and of ``RunState``."""

    name = _NAME
    title = "OpenAI Agents SDK trace"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the SDK's own words for its objects, or the version of its state."""
        found = sample.first()
        if isinstance(found.get("data"), list):
            held = cast("list[object]", found["data"])
            found = cast("dict[str, object]", held[0]) if held and isinstance(held[0], dict) else {}
        if found.get("object") == "trace.span":
            return isinstance(found.get("span_data"), dict)
        if found.get("object") == "trace":
            return "workflow_name" in found
        return "$schemaVersion" in found and {"model_responses", "generated_items", "original_input"} <= found.keys()

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace, whose spans may lie in several documents; or for each state."""
        traces: dict[TaskId, _Trace] = {}
        parts = Parts()
        for document in documents:
            for record in document.records(skips):
                page = _page(record, skips)
                if page is not None and page.version is not None:
                    yield from _state(record, skips)
                elif page is not None:
                    for raw in [Raw(record.data)] if page.data is None else page.data:
                        _take(Record(bytes(raw), record.where), traces, parts, skips)
        for trace in traces.values():
            if trace.spans:
                yield trace.piece()
            else:
                skips.add("a trace without spans", trace.where)


class _Trace:
    """A trace while its items are read."""

    def __init__(self, task: TaskId, where: str) -> None:
        self.task = task
        self.where = where
        self.spans: list[Span] = []
        self.session: str | None = None
        self.asked: tuple[float, str] | None = None
        """When a call first said what the user had asked, and its first words."""

    def add(self, item: SpanItem, start: float, parts: Parts) -> None:
        """One span."""
        raw, said = _spoken(item, self.task, start)
        span = interpret(raw, said, parts)
        match item.span_data:
            case GenerationData(usage=usage) | ResponseData(usage=usage) if isinstance(span.work, ModelCall):
                if usage is not None:
                    span = structs.replace(span, work=structs.replace(span.work, usage=usage.usage()))
                if self.asked is None or start < self.asked[0]:
                    self._hear(said.get("prompt"), start)
            case TranscriptionData() | SpeechData():
                span = structs.replace(span, name=span.name.replace("chat", raw.name, 1))
            case _:
                pass
        self.spans.append(span)

    def _hear(self, prompt: object, when: float) -> None:
        asked = [one.text for one in messages(prompt, "user") if one.role == "user" and one.text]
        if asked:
            self.asked = (when, asked[-1])

    def piece(self) -> Piece:
        """The trace as a task."""
        calls = [span.work for span in self.spans if isinstance(span.work, ModelCall)]
        remarks = [_NAMELESS] if any(call.model == "unknown" for call in calls) else []
        title = first_words(self.asked[1]) if self.asked else None
        return finished(self.task, self.spans, title, self.session, remarks)


def _page(record: Record, skips: Skips) -> _Page | None:
    """What a record holds: traces and spans, one of these, or the state of a run."""
    if record.data.lstrip()[:1] == b"[":
        items = decode(_LISTED, record, skips, _NO_SPANS)
        return None if items is None else _Page(data=items)
    return decode(_PAGE, record, skips, _NO_SPANS)


def _take(record: Record, traces: dict[TaskId, _Trace], parts: Parts, skips: Skips) -> None:
    item = decode(ITEM, record, skips, "a trace or span that is broken or of an unknown type")
    if item is None:
        return
    if isinstance(item, TraceItem):
        task = task_of(_NAME, item.id)
        traces.setdefault(task, _Trace(task, record.where)).session = item.group_id
        return
    start = instant(item.started_at)
    if start is None:
        skips.add("a span that never started", record.where)
        return
    if item.ended_at is not None and instant(item.ended_at) is None:
        skips.add(NO_TIME.format("ended_at"), record.where)
    task = task_of(_NAME, item.trace_id)
    traces.setdefault(task, _Trace(task, record.where)).add(item, start, parts)


def _spoken(item: SpanItem, task: TaskId, start: float) -> tuple[RawSpan, Facts]:
    """An item as a span, and all that it says."""
    name, said = _said(item)
    raw = RawSpan(
        trace=task,
        id=span_of(_NAME, task, item.id),
        parent=span_of(_NAME, task, item.parent_id) if item.parent_id else None,
        name=name,
        start=start,
        end=instant(item.ended_at),
        failed=True if item.error is not None else None,
    )
    if item.error is not None:
        said["error"] = failure(item.error.message)
    return raw, {fact: value for fact, value in said.items() if value not in (None, "", [], {})}


def _said(item: SpanItem) -> tuple[str, Facts]:  # noqa: PLR0911 - one for each type
    """The span's name, and what its data says."""
    match item.span_data:
        case AgentData(name=name):
            return name or "agent", {"operation": "agent", "agent": name}
        case FunctionData(name=name, input=given, output=output):
            return name, {"operation": "tool", "tool": name, "arguments": given, "result": output}
        case GenerationData(model=model, input=given, output=output):
            return "generation", {"operation": "chat", "model": model, "prompt": given, "answer": output}
        case ResponseData(response=response, input=given):
            output = None if response is None else response.output
            model = None if response is None else response.model
            return "response", {"operation": "chat", "model": model, "prompt": given, "answer": output}
        case TranscriptionData(model=model):
            return "transcription", {"operation": "chat", "model": model}
        case SpeechData(model=model, first_content_at=first):
            came, began = instant(first), instant(item.started_at)
            after = came - began if came is not None and began is not None else None
            return "speech", {"operation": "chat", "model": model, "ttft": after}
        case HandoffData(to_agent=agent):
            return f"handoff to {agent or 'unknown'}", {"operation": "chain"}
        case GuardrailData(name=name) | CustomData(name=name):
            return name or "custom", {"operation": "chain"}
        case McpToolsData(server=server):
            return f"mcp tools of {server or 'unknown'}", {"operation": "chain"}
        case SpeechGroupData():
            return "speech group", {"operation": "chain"}
        case _:
            assert_never(item.span_data)


def _state(record: Record, skips: Skips) -> Iterator[Piece]:
    state = decode(STATE, record, skips, "a saved state that is broken or of an unknown version")
    if state is None:
        return
    key = digest(record.data.decode(errors="replace"))
    run = run_of(state, task_id(_NAME, key), key)
    if run is None:
        skips.add("a saved state that keeps neither calls nor what each of them used", record.where)
    else:
        yield run
