"""Spans of OpenTelemetry as its Python SDK writes each of them out, and as those who collect such spans keep them."""

import json
from collections.abc import Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Struct

from headway.trace.sources.document import Document, Record, Sample
from headway.trace.sources.fields.decoding import NO_TIME, convert
from headway.trace.sources.fields.instants import instant
from headway.trace.sources.otel.traces import Traces
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otel import Kind, RawEvent, RawSpan
from headway.wire.otlp import KINDS, identifier

_NAME: Final = "otel-spans"
_KINDS: Final[dict[str, Kind]] = {kind.upper(): kind for kind in KINDS if kind}
_FAILED: Final[dict[object, bool]] = {1: False, 2: True, "OK": False, "ERROR": True}
_DECODER: Final = json.JSONDecoder()


class _Context(Struct):
    trace_id: str
    span_id: str


class _Status(Struct):
    status_code: str | None = None
    code: int | str | None = None


class _Event(Struct):
    name: str = ""
    timestamp: float | str | None = None
    attributes: dict[str, object] | None = None


class _Resource(Struct):
    attributes: dict[str, object] | None = None


class _Row(Struct):
    """One span; ids stand in a context of their own (the SDK) or beside all else."""

    start_time: float | str
    name: str = ""
    end_time: float | str | None = None
    context: _Context | None = None
    trace_id: str = ""
    span_id: str = ""
    parent_id: str | None = None
    parent_span_id: str | None = None
    kind: str | int | None = None
    attributes: dict[str, object] | None = None
    status: _Status | str | None = None
    events: list[_Event] | None = None
    resource: _Resource | None = None
    resource_attributes: dict[str, object] | None = None


class OtelSpans:
    """Importer of spans written out one by one: by the SDK's console exporter, in an array, or under ``spans``."""

    name = _NAME
    title = "OpenTelemetry spans"
    scattered = False

    def claims(self, sample: Sample) -> bool:
        """By times, attributes and ids together, under the SDK's names."""
        found = list(sample.objects())
        if not found and sample.shape == "json":
            found = list(_several(sample.head.decode(errors="replace")))
        return any(_is_span(one) or any(map(_is_span, _listed(one.get("spans")))) for one in found[:20])

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """One task for each trace."""
        traces = Traces(_NAME)
        for document in documents:
            for record in document.records(skips):
                traces.add([*_spans(record, document, skips)], record.where, skips)
        yield from traces.pieces()


def _is_span(found: dict[str, object]) -> bool:
    ids = found.get("context")
    held = cast("dict[str, object]", ids) if isinstance(ids, dict) else found
    return {"name", "start_time", "attributes"} <= found.keys() and {"trace_id", "span_id"} <= held.keys()


def _listed(value: object) -> list[dict[str, object]]:
    values = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", one) for one in values if isinstance(one, dict)]


def _several(text: str) -> Iterator[dict[str, object]]:
    """JSON objects one after another with nothing between: what the SDK's console exporter prints."""
    at = 0
    while (start := text.find("{", at)) >= 0:
        try:
            _, at = _DECODER.raw_decode(text, start)  # tells where it ends, and is laxer than what reads it then
            yield msgspec.json.decode(text[start:at], type=dict[str, object])
        except (ValueError, RecursionError):
            return


def _spans(record: Record, document: Document, skips: Skips) -> Iterator[RawSpan]:
    value = document.decode(record)
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    if value is None:
        values = [*_several(record.data.decode(errors="replace"))]
        if not values:
            skips.add("a record that is broken JSON", record.where)
    for one in values:
        for row in _rows(one):
            found = convert(_Row, row, record.where, skips, "a span without a time of start or ids")
            if found is None:
                continue
            if found.end_time is not None and instant(found.end_time) is None:
                skips.add(NO_TIME.format("end_time"), record.where)
            span = _span(found)
            if span is None:
                skips.add("a span without a time of start", record.where)
            else:
                yield span


def _rows(value: object) -> list[object]:
    held = cast("dict[str, object]", value).get("spans") if isinstance(value, dict) else None
    return cast("list[object]", held) if isinstance(held, list) else [value]


def _span(row: _Row) -> RawSpan | None:
    start = instant(row.start_time)
    if start is None:
        return None
    trace, own = (row.trace_id, row.span_id) if row.context is None else (row.context.trace_id, row.context.span_id)
    parent = row.parent_id or row.parent_span_id
    kind = row.kind.upper().rpartition(".")[2].removeprefix("SPAN_KIND_") if isinstance(row.kind, str) else ""
    status = row.status
    code = (status.status_code or status.code) if isinstance(status, _Status) else status
    resource = row.resource.attributes if row.resource is not None else row.resource_attributes
    return RawSpan(
        trace=identifier(trace.removeprefix("0x"), 32),
        id=identifier(own.removeprefix("0x"), 16),
        parent=identifier(parent.removeprefix("0x"), 16) if parent else None,
        name=row.name,
        start=start,
        end=instant(row.end_time),
        attributes=row.attributes or {},
        kind=_KINDS.get(kind),
        failed=_FAILED.get(code.removeprefix("StatusCode.") if isinstance(code, str) else code),
        events=[RawEvent(one.name, instant(one.timestamp), one.attributes or {}) for one in row.events or ()],
        resource=resource or {},
    )
