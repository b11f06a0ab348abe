"""OTLP, OpenTelemetry's own format, as JSON: export requests and trace data to spans.

Tempo's JSON is the same but for its outermost name. Written after the protobuf definitions and OTLP/JSON's rules: ids
are hex (Tempo's may be base64), 64-bit numbers may be strings, enums are numbers (Tempo's are names).
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError
from headway.wire.otel import Kind, RawEvent, RawSpan, sound
from headway.wire.salvage import salvage

KINDS: Final[tuple[Kind | None, ...]] = (None, "internal", "server", "client", "producer", "consumer")
"""OTLP's enum of span kinds, by number."""
_KINDS: Final[dict[int | str, Kind | None]] = {
    **dict(enumerate(KINDS)),
    **{f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS if kind},
}
FAILED: Final[dict[int | str, bool]] = {1: False, 2: True, "STATUS_CODE_OK": False, "STATUS_CODE_ERROR": True}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


UNTIMED: Final = "a span without a time of start"


class Rejected(Struct, frozen=True):
    """What was not a span, or a field of one, and why: a short sentence without particulars."""

    reason: str
    count: int


class Batch(Struct, frozen=True):
    """What one message held."""

    spans: list[RawSpan]
    rejected: tuple[Rejected, ...] = ()
    left_out: tuple[Rejected, ...] = ()
    """Fields of the spans, by name, that are not of their type."""


Whole = TypeVar("Whole")
"""What a 64-bit number is taken for: ``int``, whether written as a number or as text, or `_Loose`."""
_Loose = int | str | float
"""Whatever it is written as, sense or nonsense."""


class _Value(Struct, Generic[Whole], rename="camel", gc=False):
    string_value: str | None = None
    int_value: Whole | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None
    array_value: object = None
    kvlist_value: object = None
    bytes_value: str | None = None


class _Attribute(Struct, Generic[Whole], gc=False):
    key: str
    value: _Value[Whole] | None = None


class _Status(Struct, gc=False):
    code: int | str = 0
    message: str = ""


class _Event(Struct, Generic[Whole], rename="camel", gc=False):
    name: str = ""
    time_unix_nano: Whole | int = 0
    attributes: list[_Attribute[Whole]] = []


class _Span(Struct, Generic[Whole], rename="camel", gc=False):
    name: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    kind: int | str = 0
    start_time_unix_nano: Whole | int = 0
    end_time_unix_nano: Whole | None = None
    attributes: list[_Attribute[Whole]] | None = None
    status: _Status | None = None
    events: list[_Event[Whole]] | None = None


class _Scope(Struct):
    name: str = ""


class _ScopeSpans(Struct, Generic[Whole], rename="camel"):
    spans: list[_Span[Whole]] = []
    scope: _Scope | None = None
    instrumentation_library: _Scope | None = None  # its name until OTLP 0.15


class _Resource(Struct):
    attributes: list[_Attribute[_Loose]] | None = None


class _ResourceSpans(Struct, Generic[Whole], rename="camel"):
    resource: _Resource | None = None
    scope_spans: list[_ScopeSpans[Whole]] | None = None
    instrumentation_library_spans: list[_ScopeSpans[Whole]] | None = None  # its name until OTLP 0.19


class _Traces(Struct, Generic[Whole], rename="camel"):
    resource_spans: list[_ResourceSpans[Whole]] | None = None
    batches: list[_ResourceSpans[Whole]] | None = None  # Tempo's name


class _LooseScopeSpans(Struct, rename="camel"):
    spans: list[msgspec.Raw] = []
    scope: _Scope | None = None
    instrumentation_library: _Scope | None = None


class _LooseResourceSpans(Struct, rename="camel"):
    resource: _Resource | None = None
    scope_spans: list[_LooseScopeSpans] | None = None
    instrumentation_library_spans: list[_LooseScopeSpans] | None = None


class _LooseTraces(Struct, rename="camel"):
    resource_spans: list[msgspec.Raw] | None = None
    batches: list[msgspec.Raw] | None = None


_TRACES: Final = msgspec.json.Decoder(_Traces[int], strict=False)
_LOOSE: Final = msgspec.json.Decoder(_LooseTraces)
_LOOSE_RESOURCE: Final = msgspec.json.Decoder(_LooseResourceSpans)
_SPAN: Final = msgspec.json.Decoder(_Span[_Loose])
_NO_GROUP: Final = "a group of spans with a field of the wrong type"
_HOLDERS: Final = frozenset(
    f"{group}{rest}" for group in ("scopeSpans", "instrumentationLibrarySpans") for rest in ("", "[]", "[].spans")
)
"""Fields of a group without which its spans are lost."""


def from_json(data: bytes) -> Batch:
    """The spans of one message.

    A span that is not one is rejected alone; a field of a span that is not of its type is left out alone.

    Raises:
        BadInputError: not JSON, or JSON that is not OTLP.
    """
    try:
        traces = _TRACES.decode(data)
    except msgspec.ValidationError:
        return _piecemeal(data)
    except msgspec.DecodeError as error:
        raise BadInputError(f"This is not JSON: {error}.", fix="Send OTLP as JSON or protobuf.") from error
    except RecursionError as error:
        raise BadInputError("This JSON is nested too deeply.", fix="Send OTLP as JSON or protobuf.") from error
    groups = traces.resource_spans if traces.resource_spans is not None else traces.batches
    if groups is None and data.split() != [b"{}"]:  # which is how a message of no spans is written
        raise BadInputError("This JSON has no resourceSpans.", fix="Send an OTLP ExportTraceServiceRequest.")
    made = Making()
    for group in groups or ():
        resource = _plain(group.resource.attributes) if group.resource is not None else {}
        for scoped in group.scope_spans or group.instrumentation_library_spans or ():
            scope = _scope(scoped)
            for span in scoped.spans:
                made.add(span, scope, resource)
    made.identify()
    return made.batch()


def _piecemeal(data: bytes) -> Batch:
    """The same, each span decoded by itself, so that what is wrong with one costs neither the others nor the rest."""
    made = Making()
    for group in _loose_groups(data, made):
        resource = _plain(group.resource.attributes) if group.resource is not None else {}
        for scoped in group.scope_spans or group.instrumentation_library_spans or ():
            scope = _scope(scoped)
            for raw in scoped.spans:
                try:
                    span, wrong = salvage(_SPAN, raw)
                except (msgspec.DecodeError, RecursionError):
                    made.reject("a span that is none")
                else:
                    made.leave_out(wrong)
                    made.add(span, scope, resource)
    made.identify()
    return made.batch()


def _loose_groups(data: bytes, made: "Making") -> Iterator[_LooseResourceSpans]:
    try:
        traces = _LOOSE.decode(data)
    except msgspec.DecodeError as error:
        raise BadInputError(f"This JSON is not OTLP: {error}.", fix="Send an ExportTraceServiceRequest.") from error
    for raw in (traces.resource_spans if traces.resource_spans is not None else traces.batches) or ():
        try:
            group, wrong = salvage(_LOOSE_RESOURCE, raw)
        except (msgspec.DecodeError, RecursionError):
            made.reject(_NO_GROUP)
            continue
        if _HOLDERS.isdisjoint(wrong):
            made.leave_out(wrong)
        else:
            made.reject(_NO_GROUP)
        yield group


class Making:
    """Spans as they are made, and what could not be."""

    def __init__(self) -> None:
        self.spans: list[RawSpan] = []
        self._rejected: dict[str, int] = {}
        self._left_out: dict[str, int] = {}

    def reject(self, reason: str) -> None:
        """Something was no span."""
        self._rejected[reason] = self._rejected.get(reason, 0) + 1

    def leave_out(self, fields: Iterable[str]) -> None:
        """Fields of the next span were not of their type."""
        for field in fields:
            self._left_out[field] = self._left_out.get(field, 0) + 1

    def add(self, span: _Span[int] | _Span[_Loose], scope: str, resource: dict[str, object]) -> None:
        """A span out of JSON, its ids as they are written there."""
        start = seconds(span.start_time_unix_nano)
        if start is None:
            self.reject(UNTIMED)
            return
        end, status = span.end_time_unix_nano, span.status
        ended = seconds(end) if end else None
        if end and ended is None and end != "0":
            self.leave_out(("endTimeUnixNano",))
        self.spans.append(
            RawSpan(
                trace=span.trace_id,
                id=span.span_id,
                parent=span.parent_span_id or None,
                name=span.name,
                start=start,
                end=ended,
                attributes=_plain(span.attributes),
                kind=_KINDS.get(span.kind),
                scope=scope,
                failed=FAILED.get(status.code) if status is not None else None,
                events=[_event(event) for event in span.events] if span.events else (),
                resource=resource,
            )
        )

    def identify(self) -> None:
        """Put the ids of spans out of JSON into the form that ids have here."""
        if not sound(self.spans):
            for span in self.spans:
                span.trace, span.id = identifier(span.trace, 32), identifier(span.id, 16)
                span.parent = (identifier(span.parent, 16) or None) if span.parent else None

    def batch(self) -> Batch:
        """All of it."""
        rejected, left_out = ([Rejected(*one) for one in held.items()] for held in (self._rejected, self._left_out))
        return Batch(self.spans, tuple(rejected), tuple(left_out))


def _scope(scoped: _ScopeSpans[int] | _LooseScopeSpans) -> str:
    named = scoped.scope or scoped.instrumentation_library
    return "" if named is None else named.name


def seconds(nanoseconds: float | str) -> float | None:
    """Epoch seconds; ``None`` where there is no time, which OTLP writes as 0."""
    try:
        whole = nanoseconds if type(nanoseconds) is int else int(nanoseconds)
    except (ValueError, OverflowError):
        return None
    return whole / 1_000_000_000 if 0 < whole < 1 << 64 else None


def identifier(text: str, digits: int) -> str:
    """An id in lower-case hex, as it is where it cannot be made so, empty where it is all zeros or missing.

    Args:
        text: hex, or the base64 that protobuf's own JSON writes.
        digits: how many hex digits it should have.
    """
    if len(text) == digits:
        return text.lower() if text[0] != "0" or text.strip("0") else ""
    if not _HEX.issuperset(text):
        try:
            found = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return text
        if len(found) * 2 == digits:
            return found.hex() if any(found) else ""
    return text


def _event(event: _Event[int] | _Event[_Loose]) -> RawEvent:
    return RawEvent(event.name, seconds(event.time_unix_nano), _plain(event.attributes))


def _plain(attributes: Sequence[_Attribute[int] | _Attribute[_Loose]] | None) -> dict[str, object]:
    """As plain values; written for speed, since it is run for each attribute of each span."""
    plain: dict[str, object] = {}
    for attribute in attributes or ():
        value = attribute.value
        if value is None:
            continue
        held: object = value.string_value
        if held is None:
            held = value.int_value
            if held is None:
                held = value.bool_value
                if held is None:
                    held = _unusual(value)
            elif type(held) is str:
                held = _int(held)
        plain[attribute.key] = held
    return plain


def _unusual(value: _Value[int] | _Value[_Loose]) -> object:
    if value.double_value is not None:
        return _float(value.double_value)
    return _nested(value.array_value, value.kvlist_value, value.bytes_value)


def _int(value: int | str) -> int | str:
    try:
        return int(value)
    except ValueError:
        return value


def _float(value: float | str) -> float | str:
    try:
        return float(value)  # what JSON has no numbers for is written as a word
    except ValueError:
        return value


def _nested(array: object, fields: object, data: str | None) -> object:
    if isinstance(array, dict):
        held = cast("dict[str, object]", array).get("values")
        return [_value(value) for value in cast("list[object]", held)] if isinstance(held, list) else []
    if isinstance(fields, dict):
        held = cast("dict[str, object]", fields).get("values")
        pairs = cast("list[object]", held) if isinstance(held, list) else []
        entries = [cast("dict[str, object]", pair) for pair in pairs if isinstance(pair, dict)]
        return {str(entry.get("key")): _value(entry.get("value")) for entry in entries}
    return data


def _value(value: object) -> object:
    if not isinstance(value, dict):
        return None
    for form, held in cast("dict[str, object]", value).items():
        if form == "intValue" and isinstance(held, int | str):
            return _int(held)
        if form == "doubleValue" and isinstance(held, float | str):
            return _float(held)
        if form in {"arrayValue", "kvlistValue"}:
            return _nested(held if form == "arrayValue" else None, held if form == "kvlistValue" else None, None)
        return held
    return None
