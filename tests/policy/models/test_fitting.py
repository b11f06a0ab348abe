"""Answers against schemas, some of which are hostile."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.policy.models.fitting import keeps

PLACE = json.dumps(
    {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}}, "required": ["city"]}
).encode()


@pytest.mark.parametrize(
    ("schema", "text", "kept"),
    [
        (PLACE, '{"city": "Bonn"}', True),
        (PLACE, '{"city": 1}', False),
        (PLACE, '{"city": "Bonn"', False),
        (PLACE, 'Here you are: {"city": "Bonn"}', False),
        (PLACE, "", False),
        (b"null", "[1]", True),
        (b"null", "word", False),
        (b'{"type": 7}', "[1]", None),
        (b'{"$ref": "http://127.0.0.1:1/s.json"}', "[1]", None),
        (b'{"$ref": "file:///etc/passwd"}', "[1]", None),
        (b'{"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}', "3", True),
    ],
)
def test_what_fits(schema: bytes, text: str, kept: bool | None) -> None:
    assert keeps(schema, text) is kept


def test_a_pattern_that_others_take_for_ever_over_is_matched_at_once() -> None:
    began = time.process_time()
    keeps(b'{"type": "string", "pattern": "^(a+)+$"}', json.dumps("a" * 5000 + "!"))
    assert time.process_time() - began < 5, "matching by trying would take longer than the universe"


@given(schema=st.text(max_size=80), text=st.text(max_size=80))
def test_anything_may_come(schema: str, text: str) -> None:
    assert keeps(schema.encode(errors="replace"), text) in {True, False, None}
