import json

import pytest

from headway.trace.sources.fields.messages import messages
from headway.trace.sources.otel.recorded import conversed, response, title_of
from headway.wire.otel import RawSpan


@pytest.mark.parametrize(
    "value",
    [
        "Why is it slow?",
        '"Why is it slow?"',
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Why is it slow?"}]},
        [
            {"role": "user", "content": "Old"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": "Why is it slow?"},
        ],
        {"messages": [{"type": "human", "content": "Why is it slow?"}]},
        {"new_message": {"role": "user", "parts": [{"text": "Why is it slow?"}]}, "user_id": "u"},
        {"args": ["Why is it slow?"], "kwargs": {}},
        {"question": "Why is it slow?"},
    ],
)
def test_a_title_is_the_last_thing_that_a_user_said(value: object) -> None:
    assert title_of(value) == "Why is it slow?"
    assert title_of(json.dumps(value)) == "Why is it slow?"


@pytest.mark.parametrize("value", [None, "", {}, [], {"a": 1, "b": "two"}, '"broken', 7])
def test_where_no_user_said_anything_there_is_none(value: object) -> None:
    assert title_of(value) is None


def test_an_input_without_messages_is_no_prompt() -> None:
    raw = RawSpan(trace="t", id="s", name="x", start=0.0)
    assert conversed(raw, {}, {"a": 1}, "Yes").prompt is None
    assert conversed(raw, {}, None, None).answer is None


def test_what_the_attributes_keep_comes_before_the_input_beside_them() -> None:
    raw = RawSpan(trace="t", id="s", name="x", start=0.0)
    found = conversed(raw, {"prompt": [{"role": "user", "content": "told"}]}, "recorded", None)
    assert [message.text for message in found.prompt or ()] == ["told"]


def test_tool_calls_of_the_vercel_sdk_are_an_answer() -> None:
    found = response('[{"toolCallId": "c1", "toolName": "search", "input": "{}"}]')
    (message,) = messages(found, "assistant")
    assert [(call.id, call.name) for call in message.calls] == [("c1", "search")]
