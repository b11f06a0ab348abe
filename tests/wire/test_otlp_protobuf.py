"""The reader against OpenTelemetry's own classes: what these write, it reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otlp_messages import protobuf, spans

from headway.core.errors import BadInputError
from headway.wire.otel import RawSpan
from headway.wire.otlp_protobuf import ProtobufReader, is_stream, is_traces, messages
from headway.wire.protobuf import fields

TRACE = "5b8efff798038103d269b633813fc60c"


def _span(**fields_: object) -> RawSpan:
    return RawSpan(trace=TRACE, id=f"{1:016x}", name="work", start=1790000000.0, **fields_)  # type: ignore[arg-type] - whichever fields the test wants


@settings(max_examples=100, deadline=None)
@given(st.lists(spans(), max_size=4))
def test_what_opentelemetrys_classes_write_is_read(raws: list[RawSpan]) -> None:
    data = protobuf(*raws).SerializeToString()
    reader = ProtobufReader()
    assert reader.read(data).spans == raws
    assert reader.read(data).spans == raws  # again, with all that is remembered


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_refused_or_rejected_but_never_raises_otherwise(data: st.DataObject) -> None:
    whole = bytearray(protobuf(_span(attributes={"a": 1, "b": ["c"]}), _span(parent=f"{2:016x}")).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        if not whole:
            break
    try:
        batch = ProtobufReader().read(bytes(whole))
    except BadInputError:
        return
    assert all(isinstance(span.start, float) for span in batch.spans)


@given(st.binary(max_size=60))
def test_bytes_that_mean_nothing_are_refused_or_hold_no_spans(data: bytes) -> None:
    try:
        assert ProtobufReader().read(data).spans == []
    except BadInputError:
        return


def test_a_span_that_is_broken_inside_is_rejected_alone() -> None:
    request = protobuf(_span(), _span())
    whole = request.SerializeToString()
    name = b"\x2a\x04work"  # field 5, four bytes
    broken = whole.replace(name, b"\x2a\x7fwork", 1)  # says that it has 127
    batch = ProtobufReader().read(broken)
    assert len(batch.spans) == 1
    assert [(one.reason, one.count) for one in batch.rejected] == [("a span that is broken inside", 1)]


def test_a_span_without_a_start_is_rejected() -> None:
    request = protobuf(_span())
    request.resource_spans[0].scope_spans[0].spans[0].start_time_unix_nano = 0
    batch = ProtobufReader().read(request.SerializeToString())
    assert batch.spans == []
    assert [one.reason for one in batch.rejected] == ["a span without a time of start"]


def test_a_message_is_recognised_by_its_first_bytes() -> None:
    data = protobuf(_span(attributes={"text": "x" * 5000})).SerializeToString()
    assert is_traces(data)
    assert is_traces(data[:200])
    assert not is_stream(data)


def test_a_file_of_the_collector_is_recognised_and_cut_into_its_messages() -> None:
    data = [protobuf(_span()).SerializeToString(), protobuf(_span(), _span()).SerializeToString()]
    stream = b"".join(len(one).to_bytes(4, "big") + one for one in data)
    assert is_stream(stream)
    assert not is_traces(stream)
    assert list(messages(stream)) == data
    assert list(messages(data[0])) == [data[0]]
    *whole, cut = messages(stream[:-3])
    assert whole == data[:1]
    with pytest.raises(BadInputError):
        ProtobufReader().read(cut)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"resourceSpans":[]}', b"\n\x02\x12\x00", b"\x7fELF\x02\x01", b"PK\x03\x04", b"\n" * 99]
)
def test_other_bytes_are_not_taken_for_traces(data: bytes) -> None:
    assert not is_traces(data)
    assert not is_stream(data)


def test_ids_of_the_wrong_size_are_not_taken_for_traces() -> None:
    request = protobuf(_span())
    request.resource_spans[0].scope_spans[0].spans[0].trace_id = b"short"
    assert not is_traces(request.SerializeToString())


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",  # a varint that is not there
        b"\x08\x80",  # one that does not end
        b"\x08" + b"\xff" * 10 + b"\x01",  # one that is too long
        b"\x0a\x05abc",  # five bytes of which there are three
        b"\x09abc",  # eight bytes of which there are three
        b"\x0b",  # a group
        b"\x02\x00",  # field 0, with a length
        b"\x00\x00",  # field 0, a number
    ],
)
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError):
        list(fields(data))


def test_values_of_every_wire_type_are_read() -> None:
    data = b"\x08\x96\x01" + b"\x12\x02hi" + b"\x19" + bytes(range(8)) + b"\x25" + bytes(4)
    assert list(fields(data)) == [(1, 150), (2, b"hi"), (3, bytes(range(8))), (4, bytes(4))]
