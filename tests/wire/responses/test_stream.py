"""What a stream said and when its tokens came, wherever its bytes were cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from openai.types.responses import ResponseErrorEvent

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.openai import ToolCall
from headway.wire.responses.responses import OpenAIResponses
from headway.wire.responses.stream import ResponseStream
from headway.wire.sse import EventScanner
from wire import JSON, cuts, damaged, data_of, encode, stream

MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}
EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r", "status": "in_progress", "model": "gpt-x", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
    {"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": "rs", "summary": []}},
    {"type": "response.output_item.added", "output_index": 1, "item": {**MESSAGE, "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Let me "},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."},
    {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
    {"type": "response.output_item.added", "output_index": 2, "item": {**CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":1}'},
    {"type": "response.output_item.done", "output_index": 2, "item": CALL},
    {
        "type": "response.completed",
        "response": {
            "id": "r",
            "status": "completed",
            "model": "gpt-x",
            "output": [MESSAGE, CALL],
            "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        },
    },
]
SENT = stream(*EVENTS)


class Refused(Struct):
    """A refusal."""

    status: int = 502
    message: str = "It broke."
    error: str = "upstream_closed"


def fed(*events: dict[str, Any], max_text: int = 1000) -> ResponseStream:
    """Events that come a second apart, the first at 1."""
    followed = ResponseStream(max_text)
    for second, event in enumerate(events, 1):
        assert followed.feed(encode(event), float(second)) is False
    return followed


def test_marks_and_what_was_said() -> None:
    followed = fed(*EVENTS)
    assert (followed.first_token, followed.first_visible, followed.last_token) == (3.0, 6.0, 10.0)
    itl = followed.itl()
    assert itl is not None
    assert (itl.count, itl.max) == (3, 3.0)
    answer = followed.answer()
    assert answer.content == "Let me look."
    assert answer.tool_calls == (ToolCall("call_1", "f", '{"a":1}'),)
    assert (answer.finish_reason, answer.model) == ("completed", "gpt-x")
    assert answer.usage == Usage(input_tokens=9, output_tokens=3)
    assert followed.done
    assert followed.complete


def test_a_stream_that_breaks_off_says_what_it_had_said() -> None:
    followed = fed(*EVENTS[:-1])
    assert not followed.complete
    answer = followed.answer()
    assert (answer.content, answer.finish_reason, answer.model) == ("Let me look.", None, "gpt-x")
    assert answer.tool_calls == (ToolCall("call_1", "f", '{"a":1}'),)


def test_failures_are_noticed() -> None:
    assert fed({"type": "error", "code": "x", "message": "y"}).failed
    failed = fed({"type": "response.failed", "response": {"id": "r", "status": "failed"}})
    assert failed.failed
    assert failed.done


def test_text_beyond_the_bound_is_timed_but_not_kept() -> None:
    followed = fed(EVENTS[5], EVENTS[6], max_text=7)
    assert followed.answer().content == "Let me "
    assert followed.last_token == 2.0


@pytest.mark.parametrize("data", [b"", b"{", b"\xff"])
def test_data_that_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        ResponseStream().feed(data, 1.0)


def test_a_chats_last_mark_is_no_error() -> None:
    assert ResponseStream().feed(b"[DONE]", 1.0) is False


@given(cuts(SENT))
def test_cut_anywhere_it_says_the_same(pieces: list[bytes]) -> None:
    scanner, followed = EventScanner(), ResponseStream()
    for piece in pieces:
        for data in scanner.feed(piece):
            followed.feed(data, 1.0)
    assert followed.answer() == fed(*EVENTS).answer()
    assert followed.done


@given(JSON | st.sampled_from(EVENTS).flatmap(damaged))
def test_any_json_is_an_event(value: Any) -> None:  # noqa: ANN401 - any JSON
    followed = fed(EVENTS[5])
    followed.feed(encode(value), 2.0)
    assert followed.first_visible == 1.0
    followed.answer()


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        (SENT, True),
        (stream(EVENTS[-1]), True),
        (stream(*EVENTS[:-1]), False),
        (stream({"type": "response.output_text.delta", "delta": "event: response.completed"}), False),
    ],
)
def test_unobserved_streams_are_known_to_have_ended(events: bytes, ended: bool) -> None:
    assert OpenAIResponses().ended(events) is ended


def test_an_error_event_is_the_clients_own() -> None:
    (data,) = data_of(OpenAIResponses().error_event(Refused()))
    event = ResponseErrorEvent.model_validate(json.loads(data), strict=True)
    assert (event.code, event.message) == ("upstream_closed", "It broke.")
