"""What is read of an answer, and the shape of a usage that we tell."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseUsage

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.openai import Answer, ToolCall
from headway.wire.responses.answer import WireUsage, read_answer, read_usage, usage_document
from wire import JSON, damaged, encode

WHOLE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-x",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "Let me ", "annotations": []},
                {"type": "output_text", "text": "look.", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "patch", "input": "*** Begin"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 5},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": 120,
    },
}


def test_an_answer_with_tools_and_usage() -> None:
    answer = read_answer(encode(WHOLE))
    assert answer.content == "Let me look."
    assert answer.tool_calls == (ToolCall("call_1", "f", '{"a":1}'), ToolCall("call_2", "patch", "*** Begin"))
    assert (answer.finish_reason, answer.model) == ("completed", "gpt-x")
    assert answer.usage == Usage(input_tokens=100, output_tokens=20, cache_read=80, cache_write=5, reasoning=7)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"status": "incomplete", "incomplete_details": None}, "incomplete"),
        ({"status": "failed"}, "failed"),
        ({"status": "in_progress"}, None),
        ({}, None),
    ],
)
def test_why_it_ended(fields: dict[str, Any], reason: str | None) -> None:
    answer = read_answer(encode(fields))
    assert answer.finish_reason == reason
    assert answer.usage == Usage()


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff"])
def test_an_answer_that_is_not_json_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        read_answer(body)


@given(JSON | damaged(WHOLE))
def test_any_json_is_an_answer(value: Any) -> None:  # noqa: ANN401 - any JSON
    assert isinstance(read_answer(encode(value)), Answer)


COUNT = st.integers(0, 10**9)


@given(COUNT, COUNT, COUNT)
def test_a_usage_that_we_tell_is_read_as_it_was(given_tokens: int, read: int, output: int) -> None:
    usage = Usage(input_tokens=given_tokens + read, output_tokens=output, cache_read=read, cache_write=0, reasoning=0)
    document = usage_document(usage)
    assert document is not None
    ResponseUsage.model_validate(document, strict=True)
    assert read_usage(msgspec.convert(document, WireUsage)) == usage


def test_an_unknown_usage_is_not_told() -> None:
    assert usage_document(Usage()) is None
