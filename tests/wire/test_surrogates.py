import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError
from headway.wire.openai import decode_request
from headway.wire.surrogates import half_character, whole_characters


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (rb'"a \ud83d b"', r"the escape \ud83d at byte 3"),
        (rb'"\ud83d\ud83d\ude00"', r"the escape \ud83d at byte 1"),
        (rb'"\ude00"', r"the escape \ude00 at byte 1"),
        (rb'"\ud83d\n\ude00"', r"the escape \ud83d at byte 1"),
        (rb'"\uD83D', r"the escape \uD83D at byte 1"),
    ],
)
def test_half_a_character_is_found_with_its_place(body: bytes, told: str) -> None:
    assert half_character(body) == f"{told} is half of a character"


@pytest.mark.parametrize("body", [rb'"\ud83d\ude00"', rb'"\\ud83d"', rb'"\u0041\n\\"', b"", b'"\xf0\x9f\x98\x80"'])
def test_whole_characters_and_escaped_backslashes_are_none(body: bytes) -> None:
    assert half_character(body) is None


@pytest.mark.parametrize(
    ("document", "whole"),
    [
        (rb'"a \ud83d b"', rb'"a \ufffd b"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\uDE00\n\\ud83d"', rb'"\ufffd\n\\ud83d"'),
        (rb'"\ud83d\ude00 \u0041"', rb'"\ud83d\ude00 \u0041"'),
        (rb'"\ud8', rb'"\ud8'),
    ],
)
def test_half_a_character_is_replaced_and_nothing_else(document: bytes, whole: bytes) -> None:
    assert whole_characters(document) == whole


def test_a_request_with_half_a_character_is_refused_with_its_place() -> None:
    body = rb'{"model":"m","messages":[{"role":"user","content":"cut off \ud83d"}]}'
    with pytest.raises(BadInputError, match=r"the escape \\ud83d at byte 59 is half of a character") as raised:
        decode_request(body)
    assert "between characters" in raised.value.fix


@given(st.text(st.characters(categories=("Cs", "So", "Lu"))))
def test_it_is_there_exactly_where_utf_8_cannot_be_written(text: str) -> None:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # two halves that meet are one
    try:
        joined.encode()
        whole = True
    except UnicodeEncodeError:
        whole = False
    assert (half_character(json.dumps(text).encode()) is None) == whole
