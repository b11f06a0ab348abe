"""A field that is not of its type costs that field alone."""

from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Raw, Struct, field

from headway.wire.salvage import salvage


class Counts(Struct):
    read: Annotated[int, Meta(ge=0)] | None = None
    given: int | None = None


class Call(Struct):
    name: str
    seconds: float | None = None


class Record(Struct):
    id: str
    usage: Counts | None = None
    calls: list[Call] = field(default_factory=list[Call])
    by_model: dict[str, Counts] = field(default_factory=dict[str, Counts])
    rest: Raw = Raw()


DECODER = msgspec.json.Decoder(Record)


def test_what_is_right_is_read_as_it_is() -> None:
    found, left_out = salvage(DECODER, b'{"id": "a", "usage": {"read": 3}}')
    assert (found, left_out) == (Record(id="a", usage=Counts(read=3)), ())


def test_a_wrong_field_is_left_out_and_named_and_all_else_stays_byte_for_byte() -> None:
    data = b'{"id":"a","usage":{"read":"n/a","given":5},"rest":{"a" : [1.50, 1e3]}}'
    found, left_out = salvage(DECODER, data)
    assert (found.id, found.usage, bytes(found.rest)) == ("a", Counts(given=5), b'{"a" : [1.50, 1e3]}')
    assert list(left_out) == ["usage.read"]


def test_a_number_that_is_written_as_a_text_is_that_number() -> None:
    found, left_out = salvage(DECODER, b'{"id":"a","usage":{"read":"12"},"calls":[{"name":"x","seconds":"-0.25"}]}')
    assert (found.usage, found.calls[0].seconds, list(left_out)) == (Counts(read=12), -0.25, [])


@pytest.mark.parametrize("value", ['"12.5"', '"-3"', '"1e3"', '"12 tokens"', '""', "true", "[]", "1.5", "-1"])
def test_what_is_no_such_number_is_unknown(value: str) -> None:
    found, left_out = salvage(DECODER, f'{{"id":"a","usage":{{"read":{value}}}}}'.encode())
    assert (found.usage, list(left_out)) == (Counts(), ["usage.read"])


def test_an_object_without_what_it_must_have_is_left_out_whole_and_only_that_one() -> None:
    data = b'{"id":"a","calls":[{"name":"x"},{"name":7},{"seconds":1},{"name":"y"}]}'
    found, left_out = salvage(DECODER, data)
    assert [call.name for call in found.calls] == ["x", "y"]
    assert list(left_out) == ["calls[].name", "calls[]", "calls[]"]


def test_the_value_in_a_map_that_is_wrong_is_found_among_the_others() -> None:
    data = b'{"id":"a","by_model":{"m":{"read":1},"...":{"read":"x"},"n":{"given":[]},"o":{"read":2}}}'
    found, left_out = salvage(DECODER, data)
    assert found.by_model == {"m": Counts(read=1), "...": Counts(), "n": Counts(), "o": Counts(read=2)}
    assert list(left_out) == ["by_model[].read", "by_model[].given"]


def test_null_says_nothing_so_nothing_is_said_of_it() -> None:
    found, left_out = salvage(DECODER, b'{"id":"a","calls":null}')
    assert (found, list(left_out)) == (Record(id="a"), [])


def test_what_means_nothing_without_the_wrong_field_is_left_out_with_it() -> None:
    found, left_out = salvage(DECODER, b'{"id":"a","usage":{"given":4,"read":"x"}}', {"read": "given"})
    assert (found.usage, list(left_out)) == (Counts(), ["usage.read"])


@pytest.mark.parametrize("data", [b"[]", b"7", b'{"id":7}', b'{"usage":{"read":1}}', b'{"id":"a"', b""])
def test_what_cannot_be_done_without_is_an_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        salvage(DECODER, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab1", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("read", "name", "x")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(("usage", "calls", "by_model", "rest", "more")), JSON))
def test_whatever_stands_in_fields_that_may_be_absent_the_rest_is_read(fields: dict[str, object]) -> None:
    data = msgspec.json.encode({"id": "a", **{key: value for key, value in fields.items() if _fits(value)}})
    found, _ = salvage(DECODER, data)
    assert found.id == "a"


def _fits(value: object) -> bool:
    try:
        msgspec.json.decode(msgspec.json.encode(value))
    except (msgspec.MsgspecError, OverflowError, ValueError):
        return False
    return True
