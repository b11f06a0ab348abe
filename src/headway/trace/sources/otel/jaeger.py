"""Traces out of Jaeger: the JSON of its UI and API, and that of its data model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import NO_TIME, decode
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.fields.scalars import number, text, truth
from headway.trace.sources.otel.traces import Traces
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otel import Kind, RawEvent, RawSpan
from headway.wire.otlp import KINDS, identifier

_NAME: Final = "jaeger"
_KINDS: Final[dict[str, Kind]] = {kind: kind for kind in KINDS if kind}


class _Tag(Struct, rename="camel"):
    key: str
    value: object = None
    v_str: str | None = None  # the data model says the type in the name of the field
    v_bool: bool | None = None
    v_int64: int | str | None = None
    v_float64: float | str | None = None


class _Process(Struct, rename="camel"):
    service_name: str = ""
    tags: list[_Tag] | None = None


class _Reference(Struct):
    refType: str = "CHILD_OF"  # noqa: N815 - Jaeger's own names, as those below
    traceID: str = ""  # noqa: N815
    spanID: str = ""  # noqa: N815
    traceId: str = ""  # noqa: N815
    spanId: str = ""  # noqa: N815


class _Log(Struct):
    timestamp: float | str = 0
    fields: list[_Tag] = []


class _Span(Struct):
    operationName: str = ""  # noqa: N815
    traceID: str = ""  # noqa: N815
    spanID: str = ""  # noqa: N815
    traceId: str = ""  # noqa: N815
    spanId: str = ""  # noqa: N815
    parentSpanID: str = ""  # noqa: N815
    startTime: int | float | str | None = None  # noqa: N815
    duration: int | float | str | None = None
    references: list[_Reference] | None = None
    tags: list[_Tag] | None = None
    logs: list[_Log] | None = None
    processID: str = ""  # noqa: N815
    process: _Process | None = None


class _Trace(Struct):
    spans: list[Raw]
    processes: dict[str, _Process] | None = None


class _Answer(Struct):
    """What the API gives: several traces; else it is one by itself."""

    data: list[Raw] | None = None


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_TRACE: Final = msgspec.json.Decoder(_Trace)
_SPAN: Final = msgspec.json.Decoder(_Span)


class Jaeger:
    """Importer of Jaeger's JSON."""

    name = _NAME
    title = "Jaeger"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By spans that name their operation, in a trace that names its processes or spans that carry theirs."""
        return any(_is_trace(found) or any(map(_is_trace, _listed(found.get("data")))) for found in sample.objects())

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace."""
        traces = Traces(_NAME)
        for document in documents:
            for record in document.records(skips):
                for number_, raw in enumerate(_traces(record, skips)):
                    where = f"{record.where}, trace {number_ + 1}"
                    trace = decode(_TRACE, Record(bytes(raw), where), skips, "a trace without a list of spans")
                    if trace is not None:
                        traces.add([*_spans(trace, where, skips)], where, skips)
        yield from traces.pieces()


def _listed(value: object) -> list[dict[str, object]]:
    values = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", one) for one in values if isinstance(one, dict)]


def _is_trace(found: dict[str, object]) -> bool:
    spans = _listed(found.get("spans"))
    return any("operationName" in span and ("processID" in span or "process" in span) for span in spans)


def _traces(record: Record, skips: Skips) -> Sequence[Raw]:
    answer = decode(_ANSWER, record, skips, "a record that is broken JSON")
    if answer is None:
        return ()
    return [Raw(record.data)] if answer.data is None else answer.data


def _spans(trace: _Trace, where: str, skips: Skips) -> Iterator[RawSpan]:
    resources = {name: _attributes(process.tags) for name, process in (trace.processes or {}).items()}
    for raw in trace.spans:
        span = decode(_SPAN, Record(bytes(raw), where), skips, "a span of the wrong type")
        if span is None:
            continue
        start = _time(span.startTime)
        if start is None:
            skips.add("a span without a time of start", where)
            continue
        if span.duration is not None and _seconds(span.duration) is None:
            skips.add(NO_TIME.format("duration"), where)
        resource = _attributes(span.process.tags) if span.process is not None else resources.get(span.processID, {})
        yield _span(span, start, resource)


def _span(span: _Span, start: float, resource: dict[str, object]) -> RawSpan:
    attributes = _attributes(span.tags)
    length = _seconds(span.duration)
    trace = span.traceID or identifier(span.traceId, 32)
    parent, awaited = _parent(span, trace)
    kind = text(attributes.get("span.kind")) or ""
    status = text(attributes.get("otel.status_code"))
    failed = {"ERROR": True, "OK": False}.get(status or "", truth(attributes.get("error")))
    return RawSpan(
        trace=trace,
        id=span.spanID or identifier(span.spanId, 16),
        parent=parent,
        name=span.operationName,
        start=start,
        end=None if length is None else start + length,
        attributes=attributes,
        kind=_KINDS.get(kind),
        scope=text(attributes.get("otel.scope.name")) or text(attributes.get("otel.library.name")) or "",
        failed=failed,
        events=[_event(log) for log in span.logs] if span.logs else (),
        resource=resource,
        awaited=awaited,
    )


def _parent(span: _Span, trace: str) -> tuple[str | None, bool]:
    """The span above, and whether it waited: it did not for what only follows from it."""
    follows: str | None = None
    for reference in span.references or ():
        other = reference.spanID or identifier(reference.spanId, 16)
        if (reference.traceID or identifier(reference.traceId, 32)) != trace:
            continue
        if reference.refType != "FOLLOWS_FROM":
            return other, True
        follows = follows or other
    return (span.parentSpanID, True) if span.parentSpanID else (follows, follows is None)


def _time(value: object) -> float | None:
    """Epoch seconds: the API counts µs, the data model writes the time out."""
    if isinstance(value, str):
        return instant(value)
    found = number(value)
    return found / 1e6 if found is not None and found >= 0 else None


def _seconds(value: object) -> float | None:
    """A duration: the API counts µs, the data model says its unit, and an unfinished span has none."""
    if isinstance(value, str):
        for unit, size in (("ns", 1e9), ("µs", 1e6), ("us", 1e6), ("ms", 1e3), ("s", 1.0)):
            if value.endswith(unit):
                found = number(value.removesuffix(unit))
                return None if found is None else found / size
    found = number(value)
    return None if found is None else found / 1e6


def _event(log: _Log) -> RawEvent:
    fields = _attributes(log.fields)
    return RawEvent(text(fields.get("event")) or "", _time(log.timestamp), fields)


def _attributes(tags: Iterable[_Tag] | None) -> dict[str, object]:
    plain: dict[str, object] = {}
    for tag in tags or ():
        typed = (tag.v_str, tag.v_bool, tag.v_int64, tag.v_float64)
        plain[tag.key] = tag.value if tag.value is not None else next((v for v in typed if v is not None), None)
    return plain
