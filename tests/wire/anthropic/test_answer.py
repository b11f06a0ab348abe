"""What is read of an answer; counts that include the cache; what stays unknown."""

from typing import Any

import pytest
from anthropic.types import Usage as TheirUsage
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.anthropic.answer import WireUsage, read_answer, read_usage, usage_document
from headway.wire.openai import Answer, ToolCall
from wire import JSON, damaged, encode

WHOLE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Let me "},
        {"type": "text", "text": "look."},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1.50}},
        {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 80,
        "cache_creation_input_tokens": 5,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 7},
    },
}


def test_an_answer_with_tools_and_usage() -> None:
    answer = read_answer(encode(WHOLE))
    assert answer.content == "Let me look."
    assert answer.tool_calls == (ToolCall("toolu_1", "f", '{"a": 1.5}'),)
    assert (answer.finish_reason, answer.model) == ("tool_use", "claude-x")
    assert answer.usage == Usage(input_tokens=95, output_tokens=20, cache_read=80, cache_write=5, reasoning=7)


def test_what_was_not_told_is_unknown() -> None:
    assert read_answer(b'{"content":[{"type":"text","text":"hi"}]}').usage == Usage()
    assert read_usage(WireUsage(output_tokens=3)) == Usage(output_tokens=3)
    assert read_usage(WireUsage(input_tokens=3)) == Usage(input_tokens=3)


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff"])
def test_an_answer_that_is_not_json_is_the_engines_fault(body: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        read_answer(body)


@given(JSON | damaged(WHOLE))
def test_any_json_is_an_answer(value: Any) -> None:  # noqa: ANN401 - any JSON
    assert isinstance(read_answer(encode(value)), Answer)


COUNT = st.integers(0, 10**9)


@given(COUNT, COUNT, COUNT, COUNT)
def test_a_usage_that_we_tell_is_read_as_it_was(plain: int, read: int, write: int, output: int) -> None:
    usage = Usage(input_tokens=plain + read + write, output_tokens=output, cache_read=read, cache_write=write)
    document = usage_document(usage)
    assert document["input_tokens"] == plain
    assert read_usage(WireUsage(**document)) == usage
    TheirUsage.model_validate(document, strict=True)
