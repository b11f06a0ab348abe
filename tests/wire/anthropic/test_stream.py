"""What a stream said and when its tokens came, wherever its bytes were cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.anthropic.messages import AnthropicMessages
from headway.wire.anthropic.stream import MessageStream
from headway.wire.openai import ToolCall
from headway.wire.sse import EventScanner
from wire import JSON, cuts, damaged, data_of, encode, stream

EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 80,
                "cache_creation_input_tokens": 5,
                "output_tokens": 1,
            },
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
    },
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]
SENT = stream(*EVENTS)


def fed(*events: dict[str, Any], max_text: int = 1000) -> MessageStream:
    """Events that come a second apart, the first at 1."""
    followed = MessageStream(max_text)
    for second, event in enumerate(events, 1):
        assert followed.feed(encode(event), float(second)) is False
    return followed


def test_marks_and_what_was_said() -> None:
    followed = fed(*EVENTS)
    # thinking at 4, text at 8 and 9, the first tool's block at 11, its input at 13 and 14, the second tool's at 16
    assert (followed.first_token, followed.first_visible, followed.last_token) == (4.0, 8.0, 16.0)
    itl = followed.itl()
    assert itl is not None
    assert (itl.count, itl.max) == (6, 4.0)
    answer = followed.answer()
    assert answer.content == "Let me look."
    assert answer.tool_calls == (ToolCall("toolu_1", "f", '{"a":1}'), ToolCall("toolu_2", "g", "{}"))
    assert (answer.finish_reason, answer.model) == ("tool_use", "claude-x")
    assert answer.usage == Usage(input_tokens=95, output_tokens=20, cache_read=80, cache_write=5)
    assert followed.done
    assert followed.complete
    assert not followed.failed


def test_usage_of_the_last_event_replaces_what_the_first_one_said() -> None:
    last = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 12, "output_tokens": 3}}
    assert fed(EVENTS[0], last).answer().usage == Usage(input_tokens=97, output_tokens=3, cache_read=80, cache_write=5)


def test_a_stream_that_stops_short_is_not_complete() -> None:
    assert not fed(*EVENTS[:-2]).complete
    assert fed(*EVENTS[:-1]).complete
    assert not fed(*EVENTS[:-1]).done


def test_an_error_event_is_noticed() -> None:
    assert fed({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).failed


def test_text_beyond_the_bound_is_timed_but_not_kept() -> None:
    followed = fed(EVENTS[7], EVENTS[8], max_text=7)
    assert followed.answer().content == "Let me "
    assert followed.last_token == 2.0


@pytest.mark.parametrize("data", [b"", b"{", b"\xff"])
def test_data_that_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        MessageStream().feed(data, 1.0)


@given(cuts(SENT))
def test_cut_anywhere_it_says_the_same(pieces: list[bytes]) -> None:
    scanner, followed = EventScanner(), MessageStream()
    for piece in pieces:
        for data in scanner.feed(piece):
            followed.feed(data, 1.0)
    assert followed.answer() == fed(*EVENTS).answer()
    assert followed.done


@given(JSON | st.sampled_from(EVENTS).flatmap(damaged))
def test_any_json_is_an_event(value: Any) -> None:  # noqa: ANN401 - any JSON
    followed = MessageStream()
    followed.feed(encode(EVENTS[10]), 1.0)
    followed.feed(encode(value), 2.0)
    assert len(followed.answer().tool_calls) >= 1


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        (SENT, True),
        (b'event: message_stop\ndata: {"type":"message_stop"      }\n\n', True),
        (stream(*EVENTS[:-1]), False),
        (stream({"type": "content_block_delta", "delta": {"text": '{"type":"message_stop"}'}}), False),
    ],
)
def test_unobserved_streams_are_known_to_have_ended(events: bytes, ended: bool) -> None:
    assert AnthropicMessages().ended(events) is ended
    assert len(data_of(events)) >= 1
