"""Traces out of Langfuse, in every form in which it gives them out.

Most observations came to Langfuse as spans of OpenTelemetry, whose attributes it keeps in their metadata: these tell
more, and more truly, than what it makes of them, so they are read first (`headway.trace.sources.otel.genai`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, cast

from msgspec import structs

from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.core.usage import Usage
from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import NO_TIME
from headway.trace.sources.fields.failures import FAILED, failure
from headway.trace.sources.fields.identities import span_of, task_of
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.langchain import tool_result
from headway.trace.sources.fields.messages import Parts, decoded
from headway.trace.sources.fields.scalars import NO_COUNT, NO_NUMBER
from headway.trace.sources.langfuse.rows import KINDS, Observation, Trace, is_row, row, rows
from headway.trace.sources.langfuse.usage import cost_of, counted, impossible_costs, impossible_counts
from headway.trace.sources.otel.attributes import Facts, facts
from headway.trace.sources.otel.beeai import event
from headway.trace.sources.otel.exchange import asked
from headway.trace.sources.otel.finish import finished
from headway.trace.sources.otel.genai import interpret, interpret_as, role_of
from headway.trace.sources.otel.recorded import conversed, title_of
from headway.trace.sources.session.draft import first_words
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otel import RawSpan

_NAME: Final = "langfuse"
_AT_END: Final = 0.001
"""Seconds before the end of a call within which a first token is none."""
_ADDED: Final = "Cached tokens were added to the input of {}, whose counts leave them out."
_ASSUMED: Final = (
    "Langfuse keeps cached tokens apart from the input, so they were added to that of {}. Some SDKs send it an input"
    " that holds them already, which its export does not tell: then it is too high by what was cached."
)
_ESTIMATED: Final = "The tokens of {} were estimated by Langfuse, since nobody reported them: they are left unknown."
_LATE: Final = "The first token of {} is recorded at the very end, which is none: their TTFT is unknown."
_RECKONED: Final = "The cost of {} is what Langfuse reckoned from its price list."
_SENTENCES: Final = (_ADDED, _ASSUMED, _ESTIMATED, _LATE, _RECKONED)


class Langfuse:
    """Importer of the JSON of Langfuse's UI, REST API and blob storage."""

    name = _NAME
    title = "Langfuse export"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By the fields that only Langfuse has together, and its types of observations."""
        return bool(sample.values) and is_row(sample.values[0])

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace, whose observations may lie in several documents."""
        traces: dict[TaskId, _Trace] = {}
        parts = Parts()
        for document in documents:
            for record in document.records(skips):
                for row_ in rows(record, skips):
                    _take(row_, traces, parts, skips)
        while traces:
            trace = traces.pop(next(iter(traces)))
            if trace.spans:
                yield trace.piece()
            elif trace.listed:
                skips.add("a trace whose observations are listed by id only: export the observations", trace.where)
            else:
                skips.add("a trace without observations", trace.where)


class _Trace:
    """A trace while its rows are read."""

    def __init__(self, task: TaskId, where: str) -> None:
        self.task = task
        self.where = where
        self.listed = False
        self.spans: list[Span] = []
        self.session: str | None = None
        self.title: str | None = None
        self.first: tuple[float, str | None] | None = None
        """When the earliest call began, and what it says that the user asked."""
        self.told: Counter[str] = Counter()
        """Calls of which each sentence is to be said."""

    def head(self, trace: Trace) -> None:
        """What the trace says of itself."""
        self.session = trace.session_id or self.session
        self.title = title_of(trace.input) or self.title

    def add(self, row: Observation, start: float, parts: Parts) -> None:
        """One observation."""
        raw, said = _spoken(row, self.task, start)
        self.spans.append(
            self._call(row, raw, said, parts) if role_of(raw, said) == "call" else interpret(raw, said, parts)
        )
        self.session = self.session or row.session_id
        if raw.parent is None and self.title is None:
            self.title = title_of(row.input)

    def _call(self, row: Observation, raw: RawSpan, said: Facts, parts: Parts) -> Span:
        exchanged = conversed(raw, said, row.input, row.output)
        if self.first is None or raw.start < self.first[0]:
            self.first = (raw.start, asked(exchanged))
        said.setdefault("request", row.input)  # may name the model
        count = counted(row)
        if not said.keys() & {"input", "uncached", "output", "usage"}:
            if "operation" in facts(raw.attributes) and not any(map(_counts, raw.attributes)):
                self.told[_ESTIMATED] += count.usage.input_tokens is not None
            else:
                said |= _counts_of(count.usage)
                self.told[_ADDED] += count.added == "told"
                self.told[_ASSUMED] += count.added == "assumed"
        if "ttft" not in said and (after := _first_token(row, raw)) is not None:
            if raw.end is not None and after >= raw.end - raw.start - _AT_END and count.usage.output_tokens != 1:
                self.told[_LATE] += 1
            else:
                said["ttft"] = after
        span = interpret_as("call", raw, said, parts, exchanged)
        work = span.work
        if not isinstance(work, ModelCall) or work.cost is not None:
            return span
        agreed = (work.usage.input_tokens, work.usage.output_tokens) == (
            count.usage.input_tokens,
            count.usage.output_tokens,
        )
        cost = cost_of(row, trusted=agreed and count.added != "assumed" and work.usage.input_tokens is not None)
        self.told[_RECKONED] += cost is not None and not row.provided_cost_details
        return structs.replace(span, work=structs.replace(work, cost=cost))

    def piece(self) -> Piece:
        """The trace as a task."""
        remarks = [one.format(_calls(self.told[one])) for one in _SENTENCES if self.told[one]]
        title = self.title
        if title is None and self.first is not None:
            title = first_words(self.first[1] or "")
        session = self.session or next((span.session for span in self.spans if span.session), None)
        return finished(self.task, self.spans, title, session, remarks)


def _take(record: Record, traces: dict[TaskId, _Trace], parts: Parts, skips: Skips) -> None:
    found, where = row(record, skips), record.where
    match found:
        case None:
            pass
        case str():
            next(reversed(traces.values()), _Trace(TaskId(""), where)).listed = True
        case Trace():
            task = task_of(_NAME, found.id)
            traces.setdefault(task, _Trace(task, where)).head(found)
        case Observation():
            start = instant(found.start_time)
            if start is None:
                skips.add("an observation whose start is no time", where)
                return
            task = task_of(_NAME, found.trace_id or found.id)
            traces.setdefault(task, _Trace(task, where)).add(found, start, parts)
            if found.end_time is not None and instant(found.end_time) is None:
                skips.add(NO_TIME.format("endTime"), where)
            for name in impossible_counts(found):
                skips.add(NO_COUNT.format(name), where)
            for name in impossible_costs(found):
                skips.add(NO_NUMBER.format(name), where)


def _spoken(row: Observation, task: TaskId, start: float) -> tuple[RawSpan, Facts]:
    """An observation as the span that it once was, and all that it says: attributes first, then Langfuse's fields."""
    kept = _fields(row.metadata)
    attributes, scope = _fields(kept.get("attributes")), _fields(kept.get("scope")).get("name")
    end = instant(row.end_time)
    raw = RawSpan(
        trace=task,
        id=span_of(_NAME, task, row.id),
        parent=span_of(_NAME, task, row.parent_observation_id) if row.parent_observation_id else None,
        name=row.name or row.type.lower(),
        start=start,
        end=start if end is None and row.type == "EVENT" else end,
        attributes=attributes,
        scope=scope if isinstance(scope, str) else "",
        failed=True if row.level == "ERROR" else None,
        resource=_fields(kept.get("resourceAttributes")),
    )
    said = facts(attributes)
    _operate(row, raw, said)
    if raw.failed and (word := failure(row.status_message)) != FAILED:
        said.setdefault("error", word)
    others: Facts = {
        "model": row.model or row.provided_model_name,
        "provider": kept.get("ls_provider"),
        "session": row.session_id,
        "arguments": row.input,
        "result": row.output,
    }
    return raw, {**{fact: value for fact, value in others.items() if value not in (None, "")}, **said}


def _operate(row: Observation, raw: RawSpan, said: Facts) -> None:
    """Say what the observation did, where its attributes do not."""
    operation = KINDS.get(row.type, "")
    called = tool_result(row.output)
    if not operation and called is not None and called.name == raw.name:
        operation = "tool"
        said.setdefault("call_id", called.id)
        said.setdefault("failed", called.failed)
    if not operation and "model" in said and "operation" not in said:
        operation = "agent" if "agent" in said else "chain"  # it sums up the calls inside it
    if operation:
        said.setdefault("operation", operation)
    happened = event(raw.scope, raw.name)
    if happened is not None:
        said.setdefault("agent", happened.what)
        said.setdefault("tool", happened.what)
        if not happened.work:
            said["operation"] = "chain"


def _counts_of(usage: Usage) -> Facts:
    counts: Facts = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }
    return {fact: count for fact, count in counts.items() if count is not None}


def _first_token(row: Observation, raw: RawSpan) -> float | None:
    """Seconds to the first token; a bare number is in the unit that the observation's latency is in, s or ms."""
    came = instant(row.completion_start_time)
    if came is not None:
        return came - raw.start if came > raw.start else None
    after = row.time_to_first_token
    if not after or after < 0:
        return None
    if row.latency and raw.end is not None:
        length = raw.end - raw.start
        return after / 1000 if abs(row.latency / 1000 - length) < abs(row.latency - length) else after
    return after


def _fields(value: object) -> dict[str, object]:
    found = decoded(value)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _counts(attribute: str) -> bool:
    return "usage" in attribute or "token_count" in attribute


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number:,} calls"
