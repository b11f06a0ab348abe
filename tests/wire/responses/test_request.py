"""What is read of a Responses request, and the conversation that identity sees in its items."""

import json
from typing import Any

import pytest
from hypothesis import given

from headway.core.errors import BadInputError
from headway.policy.messages import calls, decode, results
from headway.wire.openai import NULL
from headway.wire.responses.request import read_request
from wire import JSON, damaged, encode

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "weather?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Bonn"}'},
    {"type": "function_call", "call_id": "call_2", "name": "time", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "noon"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]},
]
WHOLE: dict[str, Any] = {
    "model": "m",
    "input": ITEMS,
    "instructions": "Be brief.",
    "max_output_tokens": 50,
    "stream": True,
    "tools": [{"type": "function", "name": "weather", "parameters": {}, "strict": True}],
    "prompt_cache_key": "k",
    "previous_response_id": "resp_0",
}


def test_what_gateways_need_is_read() -> None:
    request = read_request(encode(WHOLE))
    assert (request.model, request.stream, request.output_limit) == ("m", True, 50)
    assert (request.session, request.previous_response_id) == ("k", "resp_0")
    assert json.loads(bytes(request.tools)) == WHOLE["tools"]


def test_items_are_a_conversation() -> None:
    assert json.loads(bytes(read_request(encode(WHOLE)).messages)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I look."}],
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city":"Bonn"}'},
                },
                {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "noon"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
    ]


def test_a_text_is_a_conversation_too() -> None:
    request = read_request(b'{"model":"m","input":"hi"}')
    assert json.loads(bytes(request.messages)) == [{"role": "user", "content": "hi"}]
    assert request.session is None
    assert request.output_limit is None


def test_items_of_other_kinds_still_tell_conversations_apart() -> None:
    def messages(query: str) -> bytes:
        item = {"type": "web_search_call", "name": query}
        return bytes(read_request(encode({"model": "m", "input": [item]})).messages)

    assert messages("a") != messages("b")


@pytest.mark.parametrize(
    ("fields", "session"),
    [
        ({"conversation": "conv_1", "prompt_cache_key": "k"}, "conv_1"),
        ({"conversation": {"id": "conv_1"}}, "conv_1"),
        ({"metadata": {"session_id": "s"}}, "s"),
        ({"metadata": {"id": "s"}}, None),
        ({"metadata": 7, "conversation": 7}, None),
    ],
)
def test_sessions_that_the_body_names(fields: dict[str, Any], session: str | None) -> None:
    assert read_request(encode({"model": "m", "input": "hi", **fields})).session == session


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b'{"input":"hi"}', "`model`"),
        (b'{"model":"m","input":7}', "`input` is neither"),
        (b'{"model":"m","input":{}}', "`input` is neither"),
        (b'{"model":"m","input":"hi","tools":"search"}', r"Expected `array \| null` - at `\$\.tools`"),
        (b'{"model":"m","input":"hi","stream":"yes"}', r"\$\.stream"),
    ],
)
def test_a_bad_request_is_told_what_and_where(body: bytes, says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        read_request(body)
    assert caught.value.fix


@given(JSON | damaged(WHOLE))
def test_any_json_is_read_or_refused(value: Any) -> None:  # noqa: ANN401 - any JSON
    try:
        request = read_request(encode(value))
    except BadInputError:
        return
    if request.messages == NULL:
        return
    messages = decode(bytes(request.messages))
    if messages is not None:
        results(messages)
        assert all(call.id is not None for message in messages for call in calls(message))
