import json

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from headway.wire.otlp_answers import refused, rejected_in, taken
from headway.wire.protobuf import fields


@given(st.integers(0, 2**40), st.text(max_size=300))
def test_opentelemetrys_classes_read_the_answer(rejected: int, why: str) -> None:
    answer = ExportTraceServiceResponse.FromString(taken("protobuf", rejected, why))
    assert answer.HasField("partial_success") is bool(rejected)
    assert answer.partial_success.rejected_spans == rejected
    assert answer.partial_success.error_message == (why if rejected else "")


@given(st.integers(0, 2**40), st.text(max_size=300))
def test_what_was_rejected_is_read_from_the_answer(rejected: int, why: str) -> None:
    assert rejected_in(taken("protobuf", rejected, why)) == rejected


def test_json_answers_say_nothing_where_all_was_taken() -> None:
    assert taken("json", 0, "") == b"{}"
    assert json.loads(taken("json", 3, "no")) == {"partialSuccess": {"rejectedSpans": "3", "errorMessage": "no"}}


def test_refusals_say_why() -> None:
    assert json.loads(refused("json", "too large")) == {"message": "too large"}
    assert list(fields(refused("protobuf", "too large"))) == [(2, b"too large")]
