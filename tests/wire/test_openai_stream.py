"""What a stream said and when its tokens came."""

import json
from typing import Any

import pytest

from headway.core.errors import UpstreamError
from headway.core.usage import EngineTimings, Usage
from headway.wire.openai import ToolCall
from headway.wire.openai_stream import AnswerStream, only_usage


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> bytes:  # noqa: ANN401 - any JSON
    return json.dumps({"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}).encode()


def fed(*events: tuple[bytes, float], max_text: int = 1000) -> AnswerStream:
    stream = AnswerStream(max_text)
    for data, now in events:
        stream.feed(data, now)
    return stream


def test_marks_of_a_thinking_model() -> None:
    stream = fed(
        (delta(role="assistant", content=""), 1.0),
        (delta(reasoning_content="hm"), 2.0),
        (delta(content="yes"), 2.5),
        (delta(content=" sir"), 3.5),
        (delta(finish="stop"), 3.75),
        (b"[DONE]", 4.0),
    )
    assert (stream.first_token, stream.first_visible, stream.last_token) == (2.0, 2.5, 3.5)
    itl = stream.itl()
    assert itl is not None
    assert (itl.count, itl.mean, itl.max) == (2, 0.75, 1.0)
    assert stream.answer().content == "yes sir"
    assert stream.answer().finish_reason == "stop"
    assert stream.done


def test_reasoning_by_its_other_name() -> None:
    assert fed((delta(reasoning="hm"), 1.0)).first_token == 1.0


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    def piece(index: int, **more: Any) -> bytes:  # noqa: ANN401 - any JSON
        return delta(tool_calls=[{"index": index, **more}])

    stream = fed(
        (piece(0, id="a", function={"name": "f", "arguments": ""}), 1.0),
        (piece(0, function={"arguments": '{"x"'}), 2.0),
        (piece(1, id="b", function={"name": "g", "arguments": "{}"}), 3.0),
        (piece(0, function={"arguments": ":1}"}), 4.0),
        (delta(finish="tool_calls"), 5.0),
    )
    assert stream.answer().tool_calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", "{}"))
    assert stream.first_token == 1.0
    assert stream.first_visible is None


def test_an_engine_that_numbers_every_tool_call_zero() -> None:
    calls = [{"index": 0, "id": name, "function": {"name": "f", "arguments": "{}"}} for name in ("a", "b")]
    assert [call.id for call in fed((delta(tool_calls=calls), 1.0)).answer().tool_calls] == ["a", "b"]


def test_only_the_first_choice_is_kept_but_all_are_timed() -> None:
    stream = fed((delta(index=1, content="other"), 1.0), (delta(content="first"), 2.0))
    assert stream.answer().content == "first"
    assert stream.first_token == 1.0


def test_usage_and_timings_of_the_last_events() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    timings = {"cache_n": 4, "prompt_n": 6, "prompt_ms": 500, "predicted_n": 2, "predicted_ms": 50}
    stream = fed(
        (json.dumps({"model": "x", "choices": [], "usage": usage, "timings": timings}).encode(), 1.0),
    )
    assert stream.answer().usage == Usage(input_tokens=10, output_tokens=2)
    assert stream.answer().engine == EngineTimings(
        prefill_tokens=6, prefill_seconds=0.5, decode_tokens=2, decode_seconds=0.05, cached_tokens=4
    )
    assert stream.answer().model == "x"


def test_timings_alone_tell_the_tokens_and_nothing_tells_nothing() -> None:
    timings = {"cache_n": 4, "prompt_n": 6, "prompt_ms": 500, "predicted_n": 2, "predicted_ms": 50}
    known = fed((json.dumps({"choices": [], "timings": timings}).encode(), 1.0)).answer().usage
    assert known == Usage(input_tokens=10, output_tokens=2, cache_read=4)
    assert fed((delta(content="x"), 1.0)).answer().usage == Usage()


def test_a_stream_is_complete_with_done_or_a_finish_reason() -> None:
    assert not fed((delta(content="x"), 1.0)).complete
    assert fed((delta(finish="stop"), 1.0)).complete
    assert fed((b"[DONE]", 1.0)).complete


def test_an_error_event_is_noticed() -> None:
    assert fed((b'{"error":{"message":"out of memory"}}', 1.0)).failed
    assert not fed((b'{"choices":[],"error":null}', 1.0)).failed


def test_json_of_another_shape_is_passed_over() -> None:
    assert fed((b'{"choices": 3}', 1.0), (b'"text"', 1.0), (b"{}", 1.0)).first_token is None


def test_text_beyond_the_bound_is_timed_but_not_kept() -> None:
    stream = fed((delta(content="1234"), 1.0), (delta(content="567"), 2.0), max_text=5)
    assert stream.answer().content == "1234"
    assert stream.last_token == 2.0


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b'{"choices": [\xff]}', b'{"unknown": ' + b"[" * 20_000])
def test_data_that_is_no_json_is_an_error(data: bytes) -> None:
    with pytest.raises(UpstreamError, match="not valid JSON"):
        AnswerStream().feed(data, 1.0)


@pytest.mark.parametrize(
    ("event", "tells"),
    [
        (b'{"choices":[],"usage":{"prompt_tokens":1}}', True),
        (b'{"usage":{"prompt_tokens":1}}', True),
        (b'{"choices":[],"usage":null}', False),
        (b'{"choices":[],"prompt_filter_results":[]}', False),
        (b'{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}', False),
        (b'{"error":{"message":"no"},"usage":{"prompt_tokens":1}}', False),
        (b"[DONE]", False),
        (b'{"choices":"none","usage":{}}', False),
    ],
)
def test_which_events_tell_the_usage_and_nothing_else(event: bytes, tells: bool) -> None:
    assert AnswerStream().feed(event, 1.0) is tells
    assert only_usage(event) is tells
