"""What is read of a Messages request, for whom it counts, and what is wrong with bad ones."""

import json
from typing import Any

import pytest
from hypothesis import given

from headway.core.errors import BadInputError
from headway.policy.messages import calls, decode, results
from headway.wire.anthropic.request import read_count_request, read_request
from headway.wire.openai import NULL
from wire import JSON, damaged, encode

TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "weather?", "cache_control": {"type": "ephemeral"}}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "is_error": True,
                "content": [
                    {"type": "text", "text": "down"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                ],
            }
        ],
    },
]
WHOLE: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": TURNS,
    "stream": True,
    "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "metadata": {"user_id": "u"},
    "one_of_tomorrow": {"kept": True},
}


def test_what_gateways_need_is_read() -> None:
    request = read_request(encode(WHOLE))
    assert (request.model, request.stream, request.output_limit) == ("claude", True, 100)
    assert json.loads(bytes(request.tools)) == WHOLE["tools"]
    assert json.loads(bytes(request.history)) == TURNS
    assert json.loads(bytes(request.messages)) == [{"role": "system", "content": WHOLE["system"]}, *TURNS]
    assert request.session is None
    assert request.asking_for_usage(encode(WHOLE)) is None


def test_identity_finds_tool_calls_and_their_results() -> None:
    messages = decode(bytes(read_request(encode(WHOLE)).messages))
    assert messages is not None
    assert [(call.id, call.name, call.arguments) for call in calls(messages[2])] == [
        ("toolu_1", "weather", '{"city":"Bonn"}')
    ]
    assert [(result.call_id, result.failed) for result in results(messages)] == [("toolu_1", True)]


@pytest.mark.parametrize(
    ("user", "session"),
    [
        ("user_9f_account_aa-bb_session_0a1b2c3d-aaaa-bbbb-cccc-0123456789ab", "0a1b2c3d-aaaa-bbbb-cccc-0123456789ab"),
        ('{"device_id":"d","session_id":"s-1"}', "s-1"),
        ('{"device_id":"d"}', None),
        ("{", None),
        ("somebody", None),
        (7, None),
    ],
)
def test_the_session_of_claude_code(user: Any, session: str | None) -> None:  # noqa: ANN401 - any JSON
    assert read_request(encode({**WHOLE, "metadata": {"user_id": user}})).session == session


def test_a_system_block_that_changes_with_every_call_tells_no_conversations_apart() -> None:
    def messages(mark: str) -> bytes:
        block = {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1; cch={mark};"}
        return bytes(read_request(encode({**WHOLE, "system": [block, {"type": "text", "text": "Hi"}]})).messages)

    assert messages("1") == messages("2")
    assert json.loads(messages("1"))[0] == {"role": "system", "content": [{"type": "text", "text": "Hi"}]}
    only = read_request(
        encode({**WHOLE, "system": [{"type": "text", "text": "x-anthropic-billing-header: 1"}]})
    ).messages
    assert json.loads(bytes(only)) == TURNS
    quoted = read_request(encode({**WHOLE, "system": "x-anthropic-billing-header: 1"})).messages
    assert json.loads(bytes(quoted))[0]["content"] == "x-anthropic-billing-header: 1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": 7}, r"\$\.model"),
        ({"max_tokens": None}, "no `max_tokens`"),
        ({"max_tokens": "many"}, r"\$\.max_tokens"),
        ({"messages": []}, "`messages` is empty"),
        ({"messages": "hi"}, r"\$\.messages"),
        ({"messages": [{"role": "user"}, {"role": "tool"}]}, r"`messages\[1\]\.role` .*'tool'"),
        ({"tools": {"name": "f"}}, r"Expected `array \| null` - at `\$\.tools`"),
        ({"messages": [7]}, r"`messages\[0\]` .*got `int`"),
    ],
)
def test_a_bad_request_is_told_what_and_where(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        read_request(encode({**WHOLE, **change}))
    assert caught.value.fix


@pytest.mark.parametrize("body", [b"", b"\xff", b'{"model":', b"[" * 50_000])
def test_what_is_no_json_is_told(body: bytes) -> None:
    with pytest.raises(BadInputError, match=r"not valid JSON|wrong type"):
        read_request(body)


def test_a_count_needs_no_limit() -> None:
    body = {key: value for key, value in WHOLE.items() if key != "max_tokens"}
    assert read_count_request(encode(body)).output_limit is None
    assert read_request(encode({**WHOLE, "tools": None})).tools == NULL


@given(JSON | damaged(WHOLE))
def test_any_json_is_read_or_refused(value: Any) -> None:  # noqa: ANN401 - any JSON
    try:
        request = read_request(encode(value))
    except BadInputError:
        return
    assert isinstance(json.loads(bytes(request.messages)), list)
    assert request.session is None or request.session
