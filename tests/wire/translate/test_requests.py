"""Requests by hand: every field where it goes, what is refused, what is left out and said to be."""

from typing import Any

import pytest
from interpreting import CREATED, checked

from headway.wire.dialect import Dialect
from headway.wire.dialects import CHAT, MESSAGES, RESPONSES
from headway.wire.translate.exchange import Exchange
from wire import encode

HI: dict[str, Any] = {"role": "user", "content": "hi"}
MINIMAL: dict[Dialect, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [HI]},
    MESSAGES: {"model": "m", "max_tokens": 9, "messages": [HI]},
    RESPONSES: {"model": "m", "input": [HI]},
}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "UERG"}
PNG = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


def asked(caller: Dialect, engine: Dialect, **fields: Any) -> tuple[dict[str, Any], tuple[str, ...]]:  # noqa: ANN401 - any JSON
    """What the engine is asked beside what it always is, and the notes."""
    exchange = Exchange(caller, engine, encode(MINIMAL[caller] | fields), created=CREATED)
    return checked(exchange, engine), exchange.notes


def test_a_messages_request_becomes_a_chat() -> None:
    body, notes = asked(
        MESSAGES,
        CHAT,
        system=[
            {"type": "text", "text": "Be "},
            {"type": "text", "text": "brief.", "cache_control": {"type": "ephemeral"}},
        ],
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "source": PNG},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {"type": "document", "source": PDF, "title": "a.pdf"},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
                ],
            },
            {"role": "system", "content": "Now in German."},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "signed elsewhere"},
                    {"type": "text", "text": "I call."},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "x"}},
                    {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": PNG}]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "gone", "is_error": True},
                    {"type": "text", "text": "Well?"},
                ],
            },
        ],
        tools=[
            {"name": "f", "description": "F.", "input_schema": SCHEMA, "strict": True, "eager_input_streaming": True}
        ],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        temperature=0.5,
        top_p=0.9,
        stop_sequences=["END"],
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
        metadata={"user_id": "u"},
        context_management={"edits": [{"type": "clear_thinking_20251015"}]},
        top_k=5,
    )
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}},
                    {"type": "text", "text": "words"},
                ],
            },
            {"role": "system", "content": "Now in German."},
            {
                "role": "assistant",
                "content": "I call.",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":"x"}'}},
                    {"id": "t2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": ""},
            {"role": "tool", "tool_call_id": "t2", "content": "Error: gone"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Returned by the tool call t1:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {"type": "text", "text": "Well?"},
                ],
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "F.", "parameters": SCHEMA, "strict": True},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "reasoning_effort": "high",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        "user": "u",
    }
    assert [note.partition("`")[2].partition("`")[0] or note[:8] for note in notes] == [
        "context_management",
        "top_k",
        "cache_control",
        "Thinking",
        "What a t",
    ]


def test_a_chat_becomes_a_messages_request() -> None:
    body, notes = asked(
        CHAT,
        MESSAGES,
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "In German."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "high"}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.50}'}},
                    {"id": "t2", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
                ],
            },
            {"role": "tool", "tool_call_id": "functions.f:0", "content": "x"},
            {"role": "tool", "tool_call_id": "t2", "content": [{"type": "text", "text": "y"}]},
            {"role": "system", "content": "Hurry."},
            {"role": "user", "content": " "},
            HI,
        ],
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        parallel_tool_calls=False,
        temperature=1.5,
        top_p=0.9,
        stop=["END", "\n"],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        reasoning_effort="minimal",
        user="u",
        n=1,
        seed=7,
        logprobs=False,
        frequency_penalty=0.1,
        prompt_cache_key="k",
        max_tokens=77,
    )
    assert body == {
        "model": "m",
        "max_tokens": 77,
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "In German."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image", "source": PNG},
                    {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                    {"type": "document", "source": PDF, "title": "a.pdf"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "hw_ZnVuY3Rpb25zLmY6MA", "name": "f", "input": {"a": 1.5}},
                    {"type": "tool_use", "id": "t2", "name": "f", "input": {"unreadable_arguments": "{broken"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "hw_ZnVuY3Rpb25zLmY6MA", "content": "x"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "y"},
                ],
            },
            {"role": "system", "content": "Hurry."},
            HI,
        ],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "temperature": 1.0,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        "metadata": {"user_id": "u"},
    }
    assert len(notes) == 8
    for said in (
        "seed",
        "frequency_penalty",
        "prompt_cache_key",
        "temperature",
        "detail",
        "Thinking",
        "Messages",
        "Stop",
    ):
        assert any(said in note for note in notes)


def test_a_responses_request_becomes_a_chat() -> None:
    body, notes = asked(
        RESPONSES,
        CHAT,
        instructions="Be brief.",
        input=[
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look:"},
                    {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "low"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zzz"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "I call.", "annotations": []}]},
            {"type": "function_call", "call_id": "t1", "name": "f", "arguments": '{"a": 1.50}'},
            {"type": "custom_tool_call", "call_id": "t2", "name": "patch", "input": "*** Begin"},
            {"type": "function_call_output", "call_id": "t1", "output": "x"},
            {"type": "custom_tool_call_output", "call_id": "t2", "output": "y"},
            {"role": "developer", "content": "Hurry."},
        ],
        tools=[
            {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True},
            {
                "type": "custom",
                "name": "patch",
                "description": "Patches.",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
            },
        ],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=True,
        max_output_tokens=9,
        temperature=0.5,
        text={"format": {"type": "json_object"}, "verbosity": "low"},
        reasoning={"effort": "low", "summary": "auto"},
        prompt_cache_key="k",
        include=["reasoning.encrypted_content"],
        store=False,
        metadata={"a": "b"},
        truncation="auto",
    )
    free = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
        "additionalProperties": False,
    }
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD", "detail": "low"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,UERG"}},
                ],
            },
            {
                "role": "assistant",
                "content": "I call.",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1.50}'}},
                    {
                        "id": "t2",
                        "type": "function",
                        "function": {"name": "patch", "arguments": '{"input":"*** Begin"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "x"},
            {"role": "tool", "tool_call_id": "t2", "content": "y"},
            {"role": "system", "content": "Hurry."},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
            {
                "type": "function",
                "function": {
                    "name": "patch",
                    "description": "Patches.\n\nThe input follows this grammar:\nstart: x",
                    "parameters": free,
                },
            },
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "verbosity": "low",
        "prompt_cache_key": "k",
        "response_format": {"type": "json_object"},
    }
    assert len(notes) == 4
    for said in ("include", "truncation", "reasoning.summary", "Reasoning of earlier turns"):
        assert any(said in note for note in notes)


@pytest.mark.parametrize(
    ("thinking", "effort"),
    [
        ({"type": "enabled", "budget_tokens": 4096}, "low"),
        ({"type": "enabled", "budget_tokens": 16_384}, "medium"),
        ({"type": "enabled", "budget_tokens": 16_385}, "high"),
        ({"type": "adaptive"}, None),
        ({"type": "disabled"}, None),
    ],
)
def test_thinking_becomes_an_effort_and_says_so(thinking: dict[str, Any], effort: str | None) -> None:
    body, notes = asked(MESSAGES, CHAT, thinking=thinking)
    assert body.get("reasoning_effort") == effort
    assert len(notes) == 1
    assert "thinking" in notes[0]


def test_no_effort_is_no_thinking() -> None:
    body, _ = asked(CHAT, MESSAGES, reasoning_effort="none")
    assert body["thinking"] == {"type": "disabled"}
    assert "output_config" not in body


def test_a_limit_that_a_chat_need_not_have_is_set_and_told() -> None:
    body, notes = asked(CHAT, MESSAGES)
    assert body["max_tokens"] == 32_000
    assert "32000 tokens" in notes[0]


def test_fields_that_ask_for_nothing_are_no_news() -> None:
    _, notes = asked(MESSAGES, CHAT, container=None, mcp_servers=[], service_tier="", metadata={})
    assert notes == ()
    _, notes = asked(CHAT, MESSAGES, max_tokens=5, logprobs=None, logit_bias={}, store=False)
    assert notes == ()


def test_a_long_user_is_left_out_for_chats() -> None:
    body, notes = asked(MESSAGES, CHAT, metadata={"user_id": "u" * 65})
    assert "user" not in body
    assert len(notes) == 1
