"""What answers say beside their text, in each dialect, whole and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.wire.form import form_of
from headway.wire.heard import Heard, asking_for_logprobs, hear, without_logprobs
from wire import JSON

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"


def told(*logprobs: float) -> dict[str, Any]:
    return {"content": [{"token": "x", "logprob": one} for one in logprobs]}


def encoded(*documents: Any) -> list[bytes]:  # noqa: ANN401 - any JSON
    return [json.dumps(document).encode() for document in documents]


ANSWERS: list[tuple[list[Any], Heard]] = [
    ([{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}], Heard(None, declined=False)),
    ([{"choices": [{"message": {}, "logprobs": told(-0.5, -1)}]}], Heard((-0.5, -1.0), declined=False)),
    (
        [{"choices": [{"delta": {}, "logprobs": told(-0.5)}]}, {"choices": [{"delta": {}, "logprobs": told(-1)}]}],
        Heard((-0.5, -1.0), declined=False),
    ),
    ([{"choices": [{"index": 1, "logprobs": told(-9)}]}], Heard(None, declined=False)),
    ([{"choices": [{"message": {"refusal": "No."}, "finish_reason": "stop"}]}], Heard(None, declined=True)),
    ([{"choices": [{"delta": {"refusal": "N"}}]}], Heard(None, declined=True)),
    ([{"choices": [{"message": {}, "finish_reason": "content_filter"}]}], Heard(None, declined=True)),
    ([{"type": "message", "stop_reason": "refusal", "content": []}], Heard(None, declined=True)),
    ([{"type": "message_delta", "delta": {"stop_reason": "refusal"}}], Heard(None, declined=True)),
    ([{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}], Heard(None, declined=False)),
    ([{"output": [{"content": [{"type": "refusal", "refusal": "No."}]}]}], Heard(None, declined=True)),
    ([{"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}], Heard(None, declined=True)),
    (
        [
            {"type": "response.output_text.delta", "delta": "Bonn", "logprobs": [{"logprob": -7}]},
            {"response": {"output": [{"content": [{"type": "output_text", "logprobs": [{"logprob": -2}]}]}]}},
        ],
        Heard((-2.0,), declined=False),
    ),
]


@pytest.mark.parametrize(("documents", "expected"), ANSWERS)
def test_what_is_heard(documents: list[Any], expected: Heard) -> None:
    assert hear([*encoded(*documents), b"[DONE]"]) == expected


@given(st.lists(JSON, max_size=3), st.binary(max_size=20))
def test_anything_may_come(documents: list[Any], noise: bytes) -> None:
    assert hear([*encoded(*documents), noise]).declined in {True, False}


@pytest.mark.parametrize(
    ("dialect", "body", "expected"),
    [
        (CHAT, b'{"model":"m","seed":1.50}', b'{"model":"m","seed":1.50,"logprobs":true,"top_logprobs":1}'),
        (CHAT, b'{"logprobs":false}', b'{"logprobs":true,"top_logprobs":1}'),
        (CHAT, b'{"logprobs":true}', None),
        (RESPONSES, b'{"model":"m"}', b'{"model":"m","include":["message.output_text.logprobs"]}'),
        (RESPONSES, b'{"include":["x"]}', b'{"include":["x","message.output_text.logprobs"]}'),
        (RESPONSES, b'{"include":["message.output_text.logprobs"]}', None),
        (MESSAGES, b'{"model":"m"}', None),
        (CHAT, b'{"logprobs":"yes"}', None),
    ],
)
def test_asking(dialect: str, body: bytes, expected: bytes | None) -> None:
    assert asking_for_logprobs(dialect, body) == expected


def test_an_answer_without_them() -> None:
    (answer,) = encoded({"choices": [{"message": {"content": "x"}, "logprobs": told(-1)}], "unknown": [1.5]})
    bare = {"choices": [{"message": {"content": "x"}, "logprobs": None}], "unknown": [1.5]}
    assert json.loads(without_logprobs(CHAT, answer)) == bare
    assert json.loads(without_logprobs(RESPONSES, b'{"logprobs":[{"logprob":-1}]}')) == {"logprobs": []}
    assert without_logprobs(CHAT, b'{"a": 1.50}') == b'{"a": 1.50}'


SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, "null"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}, SCHEMA),
        ({"text": {"verbosity": "low"}}, None),
        ({"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}}, SCHEMA),
        ({"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, SCHEMA),
        ({"output_format": {"type": "json_schema", "schema": SCHEMA}}, SCHEMA),
        ({"response_format": 7}, None),
    ],
)
def test_the_form_that_is_asked_for(body: dict[str, Any], expected: Any) -> None:  # noqa: ANN401 - any JSON
    form = form_of(json.dumps(body).encode())
    assert form == (None if expected is None else b"null" if expected == "null" else json.dumps(expected).encode())
