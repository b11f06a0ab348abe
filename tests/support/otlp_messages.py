"""Raw spans in tests: any that OTLP can carry, and messages of them made by OpenTelemetry's own classes."""

from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from headway.wire.otel import RawEvent, RawSpan
from headway.wire.otlp import KINDS

_TEXTS = st.text(max_size=300)
_PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_ATTRIBUTES = st.dictionaries(_TEXTS, _PLAIN, max_size=6)
_TIMES = st.integers(1, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
_IDS = st.integers(1, 2**64 - 1).map("{:016x}".format)
_SPANS = st.builds(
    RawSpan,
    trace=st.integers(1, 2**128 - 1).map("{:032x}".format),
    id=_IDS,
    parent=st.none() | _IDS,
    name=_TEXTS,
    start=_TIMES,
    end=st.none() | _TIMES,
    attributes=_ATTRIBUTES,
    kind=st.sampled_from([None, "internal", "server", "client", "producer", "consumer"]),
    scope=_TEXTS,
    failed=st.sampled_from([None, True, False]),
    events=st.lists(st.builds(RawEvent, _TEXTS, st.none() | _TIMES, _ATTRIBUTES), max_size=2).map(lambda e: e or ()),
    resource=_ATTRIBUTES,
)


def spans() -> st.SearchStrategy[RawSpan]:
    """Spans that OTLP can carry; times are to the millisecond."""
    return _SPANS


def any_value(plain: object) -> AnyValue:
    """A plain value as protobuf has it."""
    made = AnyValue()
    match plain:
        case bool():
            made.bool_value = plain
        case int():
            made.int_value = plain
        case float():
            made.double_value = plain
        case list():
            made.array_value.SetInParent()
            made.array_value.values.extend(map(any_value, plain))  # type: ignore[arg-type] - untyped protobuf
        case dict():
            made.kvlist_value.SetInParent()
            made.kvlist_value.values.extend(attributes(plain))  # type: ignore[arg-type] - untyped protobuf
        case _:
            made.string_value = str(plain)
    return made


def attributes(plain: dict[str, object]) -> list[KeyValue]:
    """Attributes as protobuf has them."""
    return [KeyValue(key=key, value=any_value(one)) for key, one in plain.items()]


def nanoseconds(seconds: float | None) -> int:
    """Epoch nanoseconds; 0 where there is no time."""
    return 0 if seconds is None else round(seconds * 1000) * 1_000_000


def protobuf(*spans: RawSpan) -> ExportTraceServiceRequest:
    """One export request; each span in a group of its own. Times are to the millisecond."""
    request = ExportTraceServiceRequest()
    for span in spans:
        group = request.resource_spans.add()
        group.resource.attributes.extend(attributes(dict(span.resource)))
        scoped = group.scope_spans.add()
        scoped.scope.name = span.scope
        made = scoped.spans.add()
        made.trace_id = bytes.fromhex(span.trace)
        made.span_id = bytes.fromhex(span.id)
        made.parent_span_id = bytes.fromhex(span.parent or "")
        made.name = span.name
        made.kind = ProtoSpan.SpanKind.ValueType(KINDS.index(span.kind))
        made.start_time_unix_nano = nanoseconds(span.start)
        made.end_time_unix_nano = nanoseconds(span.end)
        made.attributes.extend(attributes(dict(span.attributes)))
        if span.failed is not None:
            made.status.code = 2 if span.failed else 1  # type: ignore[assignment] - untyped protobuf
        for event in span.events:
            noted = made.events.add()
            noted.name = event.name
            noted.time_unix_nano = nanoseconds(event.time)
            noted.attributes.extend(attributes(dict(event.attributes)))
    return request
