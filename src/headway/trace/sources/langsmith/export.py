"""Traces out of LangSmith: runs from its API or SDK, one, many, or as lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import structs

from headway.core.span import ModelCall, Retrieval, Span
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.fields.completions import as_counts, inclusive, micro_usd
from headway.trace.sources.fields.decoding import NO_TIME
from headway.trace.sources.fields.failures import failure
from headway.trace.sources.fields.identities import span_of, task_of
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.langchain import tool_result
from headway.trace.sources.fields.messages import Parts
from headway.trace.sources.fields.scalars import NO_COUNT, count, impossible, number, text
from headway.trace.sources.langsmith.runs import Fields, Run, is_run, key_of, merged, records
from headway.trace.sources.langsmith.stream import Stream, stream
from headway.trace.sources.otel.attributes import Facts
from headway.trace.sources.otel.exchange import SILENT
from headway.trace.sources.otel.finish import finished
from headway.trace.sources.otel.genai import interpret_as, role_of
from headway.trace.sources.otel.recorded import conversed, title_of
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otel import RawSpan

_NAME: Final = "langsmith"
_OPERATIONS: Final = {
    "llm": "chat",
    "tool": "tool",
    "retriever": "retriever",
    "embedding": "embedding",
    "chain": "chain",
    "prompt": "chain",
    "parser": "chain",
}
_SESSIONS: Final = ("session_id", "thread_id", "conversation_id")
"""Metadata by which LangSmith tells threads; a run's own ``session_id`` is its project."""
_AT_END: Final = 0.001
_CHUNK: Final = "The first token of {} is the first chunk that came, which may have been empty."
_TOTALS: Final = "The tokens of {} are LangSmith's own totals, which it estimates where nobody reports them."
_LATE: Final = "The first token of {} is recorded at the very end, which is none: their TTFT is unknown."


class LangSmith:
    """Importer of runs as JSON."""

    name = _NAME
    title = "LangSmith runs"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the fields that only its runs have together."""
        return bool(sample.values) and is_run(sample.values[0])

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace, whose runs may lie in several documents."""
        written: dict[str, list[Fields]] = {}
        where: dict[str, str] = {}
        for document in documents:
            for record in document.records(skips):
                try:
                    for one in records(record.data):
                        key = key_of(one)
                        if key is None:
                            skips.add("a run without an id", record.where)
                            continue
                        written.setdefault(key, []).append(one)
                        where.setdefault(key, record.where)
                except (msgspec.DecodeError, RecursionError):
                    skips.add("a record that is broken or holds no runs", record.where)
        yield from _tasks(written, where, skips)


def _tasks(written: dict[str, list[Fields]], where: dict[str, str], skips: Skips) -> Iterator[Piece]:
    traces: dict[TaskId, _Trace] = {}
    parts = Parts()
    for key in list(written):
        run = merged(written.pop(key), where[key], skips)
        if run is None:
            continue
        task = task_of(_NAME, run.trace_id)
        traces.setdefault(task, _Trace(task)).add(run, parts)
        if run.end_time is not None and instant(run.end_time) is None:
            skips.add(NO_TIME.format("end_time"), where[key])
        for name in impossible(_counts(run)):
            skips.add(NO_COUNT.format(name), where[key])
    for trace in traces.values():
        yield trace.piece()


class _Trace:
    """A trace while its runs are read."""

    def __init__(self, task: TaskId) -> None:
        self._task = task
        self._spans: list[Span] = []
        self._session: str | None = None
        self._title: str | None = None
        self._told: Counter[str] = Counter()

    def add(self, run: Run, parts: Parts) -> None:
        """One run."""
        metadata = _fields(_fields(run.extra).get("metadata"))
        raw, said = _spoken(run, self._task, metadata)
        came = stream(run.events or [])
        role = role_of(raw, said)
        exchanged = conversed(raw, said, run.inputs, run.outputs) if role == "call" else SILENT
        span = interpret_as(role, raw, said, parts, exchanged)
        match span.work:
            case ModelCall() as call:
                span = structs.replace(span, work=self._timed(call, run, span, came))
            case Retrieval() as looked:
                found = _fields(run.outputs).get("documents")
                results = len(cast("list[object]", found)) if isinstance(found, list) else None
                span = structs.replace(span, work=structs.replace(looked, results=results))
            case _:
                pass
        self._spans.append(span)
        self._session = self._session or next((one for key in _SESSIONS if (one := text(metadata.get(key)))), None)
        if raw.parent is None:
            self._title = title_of(run.inputs)

    def _timed(self, call: ModelCall, run: Run, span: Span, came: Stream) -> ModelCall:
        first = came.first
        if first is None and (chunk := instant(run.first_token_time)) is not None:
            if span.end is not None and chunk >= span.end - _AT_END and call.usage.output_tokens != 1:
                self._told[_LATE] += 1
            elif chunk > span.start:
                first = chunk
                self._told[_CHUNK] += 1
        usage = _usage(run)
        if usage is None:
            usage = inclusive(count(run.prompt_tokens), count(run.completion_tokens), None, None)
            self._told[_TOTALS] += usage.input_tokens is not None
        return structs.replace(
            call,
            usage=usage,
            stream=_streamed(run),
            first_token=first,
            first_visible=came.visible,
            last_token=came.last,
            cost=micro_usd(number(run.total_cost) or None),
        )

    def piece(self) -> Piece:
        """The trace as a task."""
        remarks = [one.format(_calls(number)) for one, number in self._told.items() if number]
        return finished(self._task, self._spans, self._title, self._session, remarks)


def _spoken(run: Run, task: TaskId, metadata: Fields) -> tuple[RawSpan, Facts]:
    """A run as a span, and all that it says."""
    name = run.name or run.run_type or "run"
    raw = RawSpan(
        trace=task,
        id=span_of(_NAME, task, run.id),
        parent=span_of(_NAME, task, run.parent_run_id) if run.parent_run_id else None,
        name=name,
        start=run.start,
        end=instant(run.end_time),
        failed=True if run.error else False if run.status == "success" else None,
    )
    operation = _OPERATIONS.get(run.run_type or "chain", "chain")
    said: Facts = {"operation": operation}
    if operation == "chat":
        said |= _known(
            {
                "model": _model(run, metadata),
                "provider": metadata.get("ls_provider"),
            }
        )
    elif operation == "tool":
        called = tool_result(run.outputs)
        given = _fields(run.inputs)
        said |= _known(
            {
                "tool": name,
                "call_id": called.id if called is not None else None,
                "arguments": given["input"] if given.keys() == {"input"} else run.inputs,
                "result": _fields(run.outputs).get("output", run.outputs),
            }
        )
        if called is not None and raw.failed is None:
            raw.failed = called.failed
    if run.error:
        said["error"] = failure(run.error)
    return raw, said


def _model(run: Run, metadata: Fields) -> object:
    """The model that answered, else the one asked for."""
    outputs = _fields(run.outputs)
    asked = _fields(_fields(run.extra).get("invocation_params"))
    told = _message(outputs).get("response_metadata")
    named = (
        outputs.get("model"),
        _fields(outputs.get("llm_output")).get("model_name"),
        _fields(told).get("model_name"),
        metadata.get("ls_model_name"),
        asked.get("model"),
        asked.get("model_name"),
        _fields(run.inputs).get("model"),
    )
    return next((name for name in named if isinstance(name, str) and name), None)


def _usage(run: Run) -> Usage | None:
    """Token counts, if any were reported; LangChain's, which come first, hold the cache in the input by definition."""
    outputs = _fields(run.outputs)
    metadata = _fields(_fields(run.extra).get("metadata"))
    for held in (outputs, _message(outputs), metadata):
        told = _fields(held.get("usage_metadata"))
        if told:
            into, out = _fields(told.get("input_token_details")), _fields(told.get("output_token_details"))
            return inclusive(
                count(told.get("input_tokens")),
                count(told.get("output_tokens")),
                count(into.get("cache_read")),
                count(into.get("cache_creation")),
                count(out.get("reasoning")),
            )
    for held in (outputs.get("usage"), _fields(outputs.get("llm_output")).get("token_usage")):
        counts = as_counts(held)
        if counts is not None:
            return counts.usage()
    return None


def _counts(run: Run) -> Iterator[tuple[str, object]]:
    """All token counts that a run gives, wherever it gives them, by name; costs stand beside them."""
    outputs = _fields(run.outputs)
    yield from (("prompt_tokens", run.prompt_tokens), ("completion_tokens", run.completion_tokens))
    told = [_fields(held.get("usage_metadata")) for held in (outputs, _message(outputs))]
    told += [_fields(outputs.get("usage")), _fields(_fields(outputs.get("llm_output")).get("token_usage"))]
    for held in told:
        yield from ((name, value) for name, value in held.items() if name.endswith("_tokens"))
    for held in told[:2]:
        for name in ("input_token_details", "output_token_details"):
            yield from ((f"{name}.{kind}", value) for kind, value in _fields(held.get(name)).items())


def _message(outputs: Fields) -> Fields:
    """What LangChain's first generation says as a message."""
    found: object = outputs.get("generations")
    while isinstance(found, list):
        inside = cast("list[object]", found)
        found = inside[0] if inside else None
    message = _fields(_fields(found).get("message"))
    return _fields(message.get("kwargs")) or message


def _streamed(run: Run) -> bool | None:
    asked = (_fields(run.inputs).get("stream"), _fields(_fields(run.extra).get("invocation_params")).get("stream"))
    told = next((one for one in asked if isinstance(one, bool)), None)
    return True if any(event.name == "new_token" for event in run.events or ()) else told


def _known(said: Facts) -> Facts:
    return {fact: value for fact, value in said.items() if value not in (None, "", {}, [])}


def _fields(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"
