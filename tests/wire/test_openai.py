"""What is read of requests and answers; what is wrong with bad ones; what is left unknown."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import EngineTimings, Usage
from headway.wire.openai import NULL, ToolCall, decode_answer, decode_request, error_body

JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OTHERS = st.dictionaries(
    st.text(max_size=6).filter(
        lambda name: (
            name not in {"model", "messages", "stream", "stream_options", "tools", "prompt_cache_key", "metadata"}
        )
    ),
    JSON_VALUE,
    max_size=4,
)

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@st.composite
def message(draw: st.DrawFn) -> dict[str, Any]:
    return {**draw(st.dictionaries(st.text(max_size=5), JSON_VALUE, max_size=3)), "role": draw(st.sampled_from(ROLES))}


@given(st.text(min_size=1), st.lists(message(), min_size=1, max_size=4), st.sampled_from([None, True, False]), OTHERS)
def test_a_request_keeps_its_messages_as_they_were(
    model: str, messages: list[Any], stream: bool | None, others: dict[str, Any]
) -> None:
    body = msgspec.json.encode({**others, "model": model, "stream": stream, "messages": messages})
    request = decode_request(body)
    assert (request.model, request.stream) == (model, stream)
    assert bytes(request.messages) in body
    assert json.loads(bytes(request.messages)) == messages


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b'{"model": "m", ', "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b'{"model": "\xff", "messages": []}', "not valid JSON"),
        (b'{"model": "m", "messages": %b1%b}' % (b"[" * 20_000, b"]" * 20_000), "not valid JSON"),
        (b"[]", "wrong type"),
        (b'{"model":"m","messages":[{"role":"user"}],"tools":{}}', r"Expected `array \| null` - at `\$\.tools`"),
        (b'{"model":"m","messages":[{"role":"user"}],"tools":"search"}', r"at `\$\.tools`"),
        (b'{"model":"m","messages":[{"role":"user"}],"tools":1}', r"at `\$\.tools`"),
        (b'{"messages": []}', "`model`"),
        (b'{"model": "m"}', "`messages`"),
        (b'{"model": 7, "messages": []}', r"\$\.model"),
        (b'{"model": "m", "messages": "hello"}', r"\$\.messages"),
        (b'{"model": "m", "messages": {}}', r"\$\.messages"),
        (b'{"model": "m", "messages": [], "stream": "yes"}', r"\$\.stream"),
        (b'{"model": "m", "messages": [ ]}', "`messages` is empty"),
        (b'{"model": "m", "messages": [{"role":"user"}, {"content":"hi"}]}', r"`messages\[1\]\.role` .*missing"),
        (b'{"model": "m", "messages": [{"role":"user"}, {"role":7}]}', r"`messages\[1\]\.role` .*got `int`\."),
        (b'{"model": "m", "messages": [{"role":null}]}', r"`messages\[0\]\.role` .*got `null`\."),
        (b'{"model": "m", "messages": [{"role":"User"}]}', r"`messages\[0\]\.role` .*'User'\."),
        (b'{"model": "m", "messages": [{"role":"user"}, ["user"]]}', r"`messages\[1\]` .*got `array`\."),
        (b'{"model": "m", "messages": [null]}', r"`messages\[0\]` .*got `null`\."),
    ],
)
def test_a_bad_request_is_told_what_and_where(body: bytes, says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        decode_request(body)
    assert caught.value.fix


def test_what_a_client_sent_as_a_role_is_not_sent_back_at_length() -> None:
    with pytest.raises(BadInputError) as caught:
        decode_request(b'{"model":"m","messages":[{"role":"%b"}]}' % (b"x" * 10_000))
    assert len(str(caught.value)) < 300


def test_tools_and_session_where_the_body_has_them() -> None:
    bare = decode_request(b'{"model":"m","messages":[{"role":"user"}]}')
    assert bare.tools == NULL
    assert bare.session is None
    request = decode_request(
        b'{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"function"}],"prompt_cache_key":"k"}'
    )
    assert bytes(request.tools) == b'[{"type":"function"}]'
    assert request.session == "k"


@pytest.mark.parametrize(
    ("metadata", "session"),
    [('{"session_id":"s"}', "s"), ('{"user":"u"}', None), ('"text"', None), ('{"session_id":7}', None), ("null", None)],
)
def test_a_session_in_the_metadata(metadata: str, session: str | None) -> None:
    body = f'{{"model":"m","messages":[{{"role":"user"}}],"metadata":{metadata}}}'
    assert decode_request(body.encode()).session == session


def test_an_answer_with_tools_usage_and_details() -> None:
    answer = decode_answer(
        msgspec.json.encode(
            {
                "id": "x",
                "model": "real-name",
                "choices": [
                    {
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": None,
                            "tool_calls": [
                                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
                            ],
                        },
                        "finish_reason": "tool_calls",
                    }
                ],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 5},
                    "completion_tokens_details": {"reasoning_tokens": 7},
                },
            }
        )
    )
    assert answer.content == ""
    assert answer.tool_calls == (ToolCall("c1", "f", '{"a":1}'),)
    assert (answer.finish_reason, answer.model) == ("tool_calls", "real-name")
    assert answer.usage == Usage(input_tokens=100, output_tokens=20, cache_read=80, cache_write=5, reasoning=7)
    assert answer.engine is None


def test_timings_are_the_engines_and_stand_in_for_missing_usage() -> None:
    timings = {"cache_n": 30, "prompt_n": 12, "prompt_ms": 250.0, "predicted_n": 5, "predicted_ms": 100.0}
    answer = decode_answer(msgspec.json.encode({"choices": [], "timings": timings}))
    assert answer.engine == EngineTimings(
        prefill_tokens=12, prefill_seconds=0.25, decode_tokens=5, decode_seconds=0.1, cached_tokens=30
    )
    assert answer.usage == Usage(input_tokens=42, output_tokens=5, cache_read=30)


def test_usage_that_was_not_sent_is_unknown_and_not_zero() -> None:
    answer = decode_answer(b'{"choices":[{"message":{"content":"hi"}}]}')
    assert answer.content == "hi"
    assert answer.usage == Usage()
    assert answer.usage.input_tokens is None


DEEP = b'{"unknown": %b1%b}' % (b"[" * 20_000, b"]" * 20_000)
"""More levels than any decoder follows."""


@pytest.mark.parametrize("body", [b"null", b"[1]", b'{"choices": "none"}', b'{"choices":[{"message":{"content":[]}}]}'])
def test_json_of_another_shape_teaches_nothing(body: bytes) -> None:
    assert decode_answer(body).usage == Usage()


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"choices": [', b"\xff", DEEP])
def test_an_answer_that_is_not_json_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        decode_answer(body)


def test_an_error_has_the_shape_that_clients_know() -> None:
    assert json.loads(error_body("what", type="server_error", code="why")) == {
        "error": {"message": "what", "type": "server_error", "param": None, "code": "why"}
    }
