"""What is written as protobuf is read again, by our reader and by OpenTelemetry's own classes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp_messages import spans

from headway.wire.otel import RawSpan
from headway.wire.otlp_protobuf import ProtobufReader
from headway.wire.otlp_protobuf_writer import to_protobuf

TRACE, ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@settings(max_examples=100, deadline=None)
@given(st.lists(spans(), max_size=4))
def test_what_is_written_is_read_again(raws: list[RawSpan]) -> None:
    assert ProtobufReader().read(to_protobuf(raws)).spans == raws


def test_opentelemetrys_own_classes_read_it() -> None:
    raw = RawSpan(
        trace=TRACE,
        id=ID,
        parent="00f067aa0ba902b7",
        name="chat m",
        start=1_790_000_000.25,
        end=1_790_000_001.5,
        attributes={"gen_ai.usage.input_tokens": -5, "deep": {"a": [True, 0.5, None]}},
        kind="client",
        scope="headway",
        failed=True,
        resource={"service.name": "headway"},
    )
    (group,) = ExportTraceServiceRequest.FromString(to_protobuf([raw, raw])).resource_spans
    assert group.resource.attributes[0].value.string_value == "headway"
    (scoped,) = group.scope_spans
    assert scoped.scope.name == "headway"
    span = scoped.spans[1]
    assert (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()) == (TRACE, ID, "00f067aa0ba902b7")
    assert (span.name, span.kind, span.status.code) == ("chat m", 3, 2)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        1_790_000_000_250_000_000,
        1_790_000_001_500_000_000,
    )
    tokens, deep = span.attributes
    assert (tokens.key, tokens.value.int_value) == ("gen_ai.usage.input_tokens", -5)
    (pair,) = deep.value.kvlist_value.values
    first, second, nothing = pair.value.array_value.values
    assert (first.bool_value, second.double_value, nothing.WhichOneof("value")) == (True, 0.5, None)


@pytest.mark.parametrize("start", [-1.0, 2e10])
def test_a_time_that_cannot_be_told_is_refused(start: float) -> None:
    with pytest.raises(ValueError, match="cannot be told in nanoseconds"):
        to_protobuf([RawSpan(trace=TRACE, id=ID, name="n", start=start)])
