"""What a call tells of its own course: its first token, its stream, its attempts and how it ended."""

import pytest
from genai_spans import AT, CHAT, Attributes, call

from headway.core.usage import Usage
from headway.wire.otel import RawEvent


@pytest.mark.parametrize(
    "ttft",
    [
        {"gen_ai.response.time_to_first_chunk": 0.9},
        {"gen_ai.client.operation.time_to_first_chunk": 0.9},
        {"gen_ai.latency.time_to_first_token": 0.9},
        {"ai.response.msToFirstChunk": 900},
        {"ai.stream.msToFirstChunk": "900"},
        {"ttft_ms": 900.0},
    ],
)
def test_first_chunks_in_s_and_in_ms_come_at_the_same_time(ttft: Attributes) -> None:
    assert call(CHAT | ttft).first_token == pytest.approx(AT + 0.9, abs=1e-6)


@pytest.mark.parametrize("name", ["ai.stream.firstChunk", "First Token Stream Event", "llm.content.completion.chunk"])
def test_the_first_of_the_events_of_a_stream_is_its_first_token(name: str) -> None:
    events = [RawEvent(name, AT + 2), RawEvent(name, AT + 1), RawEvent("other", AT + 0.5)]
    assert call(CHAT, events=events).first_token == AT + 1


@pytest.mark.parametrize("ttft", [900, -1, 0, "soon", None])
def test_a_first_token_after_the_end_or_before_the_start_is_unknown(ttft: object) -> None:
    assert call(CHAT | {"gen_ai.response.time_to_first_chunk": ttft}).first_token is None


def test_an_engines_own_times_are_marks_on_its_call() -> None:
    engine: Attributes = {
        "gen_ai.latency.time_in_queue": 2.0,
        "gen_ai.latency.time_to_first_token": 3.5,
        "gen_ai.usage.prompt_tokens": 100,
        "gen_ai.usage.completion_tokens": 20,
    }
    work = call(engine, "llm_request", kind="server")
    assert (work.queued, work.sent, work.first_token) == (2.0, AT + 2, AT + 3.5)
    assert (work.model, work.usage) == ("unknown", Usage(input_tokens=100, output_tokens=20))


@pytest.mark.parametrize("told", [["stop"], '["stop"]', "stop", ["stop", "length"]])
def test_finish_reasons_are_lists_texts_or_texts_of_lists(told: object) -> None:
    assert call(CHAT | {"gen_ai.response.finish_reasons": told}).finish_reason == "stop"


@pytest.mark.parametrize(
    ("attributes", "stream"),
    [
        ({"gen_ai.request.stream": True}, True),
        ({"llm.is_streaming": "False"}, False),
        ({"ai.operationId": "ai.streamText.doStream"}, True),
        ({"ai.operationId": "ai.generateText.doGenerate"}, False),
        ({}, None),
    ],
)
def test_whether_a_call_was_streamed(attributes: Attributes, stream: bool | None) -> None:
    base = {} if "ai.operationId" in attributes else CHAT
    assert call(base | attributes | {"gen_ai.request.model": "m"}).stream is stream


def test_an_attempt_that_is_told_is_counted() -> None:
    assert call(CHAT | {"attempt": 3}).attempts == 3
    assert call(CHAT).attempts is None
