"""A request asks for its stream's usage, and is otherwise what the client sent."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.wire.openai import decode_request
from headway.wire.usage_option import asking_for_usage

JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OPTIONS = st.dictionaries(st.sampled_from(["include_usage", "include_obfuscation", "new"]), JSON_VALUE, max_size=3)
BASE = {"model": "m", "stream": True, "messages": [{"role": "user", "content": 'say "stream_options": {}'}]}


def asking(body: bytes) -> bytes | None:
    pieces = asking_for_usage(body, decode_request(body).stream_options)
    return None if pieces is None else b"".join(pieces)


@given(st.dictionaries(st.text(max_size=16), JSON_VALUE, max_size=4), st.none() | OPTIONS, st.booleans())
def test_all_else_is_as_it_was(others: dict[str, Any], options: dict[str, Any] | None, present: bool) -> None:
    body = {**others, **BASE} | ({"stream_options": options} if present else {})
    if not present:
        body.pop("stream_options", None)
    for field in ("tools", "prompt_cache_key", "metadata"):
        body.pop(field, None)
    new = asking(msgspec.json.encode(body))
    if (options or {}).get("include_usage") is True and present:
        assert new is None
        return
    assert new is not None
    expected = body | {"stream_options": {**((present and options) or {}), "include_usage": True}}
    assert json.loads(new) == expected


def test_without_options_every_byte_stays() -> None:
    body = b' \n{ "model" : "m","messages":[{"role":"user","content":"\\u00e9"}],"seed":1.0,"seed":2.0 }\n'
    assert asking(body) == b'{"stream_options":{"include_usage":true},' + body[3:]


@pytest.mark.parametrize(
    ("options", "new"),
    [
        (b"null", b'{"include_usage":true}'),
        (b"{ }", b'{"include_usage":true}'),
        (b'{"include_usage":false, "odd" : [1.50, null]}', b'{"include_usage":true,"odd":[1.50, null]}'),
        (b'{"include_usage":"yes"}', b'{"include_usage":true}'),
    ],
)
def test_with_options_what_each_member_holds_stays(options: bytes, new: bytes) -> None:
    messages = b'[ {"role":"user","content":"\\u00e9 \\"stream_options\\":1"} ]'
    body = b'{"model":"m","messages":%b,"stream_options":%b,"seed":1.0}' % (messages, options)
    assert asking(body) == b'{"model":"m","messages":%b,"stream_options":%b,"seed":1.0}' % (messages, new)


@pytest.mark.parametrize("options", [b'{"include_usage" : true}', b"7", b'"x"', b"[]"])
def test_who_asks_already_and_what_is_no_object_is_left_alone(options: bytes) -> None:
    assert asking(b'{"model":"m","messages":[{"role":"user"}],"stream_options":%b}' % options) is None
