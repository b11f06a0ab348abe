"""Expected values are worked out by hand from the records below, and read from the real file."""

import json

import pytest
from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import Step
from headway.trace.sources.openai_agents.export import OpenAIAgents
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

HEX = "0af7651916cd43dd8448eb211c80319c"
TRACE = {"object": "trace", "id": f"trace_{HEX}", "workflow_name": "Agent workflow", "group_id": "chat-7"}


def _span(letter: str, start: float, end: float, parent: str | None = "a", **data: object) -> dict[str, object]:
    return {
        "object": "trace.span",
        "id": f"span_{letter * 24}",
        "trace_id": f"trace_{HEX}",
        "parent_id": None if parent is None else f"span_{parent * 24}",
        "started_at": f"2026-01-05T10:00:{start:09.6f}+00:00",
        "ended_at": f"2026-01-05T10:00:{end:09.6f}+00:00",
        "span_data": data,
        "error": None,
    }


AGENT = _span("a", 0, 9, None, type="agent", name="Triage", handoffs=[], tools=["search"])
ASKED = _span(
    "b",
    1,
    3,
    type="generation",
    model="gpt-5",
    input=[{"role": "user", "content": "Find it"}],
    output=[{"role": "assistant", "tool_calls": [{"id": "call_1", "function": {"name": "search", "arguments": "{}"}}]}],
    usage={"input_tokens": 20, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 12}},
)
USED = _span("c", 3.5, 4, type="function", name="search", input="{}", output="nothing", mcp_data=None)
ANSWERED = _span("d", 4, 8, type="response", response_id="resp_1", usage={"input_tokens": 50, "output_tokens": 9})
ITEMS = [TRACE, AGENT, ASKED, USED, ANSWERED]


def _lines(*items: object) -> bytes:
    return "\n".join(map(json.dumps, items)).encode()


def _one(data: bytes) -> Piece:
    (piece,), skips = read(OpenAIAgents(), document(data))
    assert not skips.all()
    return piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(OpenAIAgents()) == files_of("openai_agents")


def test_a_trace_with_an_agent_two_calls_and_a_tool() -> None:
    piece = _one(_lines(*ITEMS))
    (first, asked), (last, answered) = calls_of(piece.spans)
    ((tool, use),) = tools_of(piece.spans)
    assert (piece.task, piece.title, piece.timing, extent(piece)) == (HEX, "Find it", "spans", 9.0)
    assert {span.session for span in piece.spans} == {"chat-7"}
    assert [span.name for span in piece.spans if isinstance(span.work, Step)] == ["invoke_agent Triage"]
    assert (length(first), length(last), length(tool)) == (2.0, 4.0, 0.5)
    assert (asked.usage.input_tokens, asked.usage.output_tokens, asked.usage.cache_read) == (20, 5, 12)
    assert (answered.usage.input_tokens, answered.usage.cache_read, answered.first_token) == (50, None, None)
    assert (use.name, use.issued_by, use.inferred) == ("search", first.id, False)


def test_a_response_does_not_name_its_model_and_that_is_told() -> None:
    piece = _one(_lines(*ITEMS))
    assert [call.model for _, call in calls_of(piece.spans)] == ["gpt-5", "unknown"]
    assert any("do not name their model" in remark for remark in piece.remarks)


def test_a_processor_that_keeps_responses_tells_all_of_them() -> None:
    response = {"model": "gpt-5", "output": [{"type": "message", "role": "assistant", "content": [{"text": "Hi"}]}]}
    piece = _one(_lines(_span("d", 4, 8, None, type="response", response=response, input="Say hi")))
    ((_, call),) = calls_of(piece.spans)
    assert call.answer is not None
    assert (call.model, call.answer.chars, piece.title) == ("gpt-5", 2, "Say hi")


def test_what_the_exporter_posts_is_the_same_as_lines() -> None:
    assert _one(json.dumps({"data": ITEMS}).encode()) == _one(_lines(*ITEMS)) == _one(json.dumps(ITEMS).encode())


def test_spans_of_one_trace_in_two_files_are_one_task() -> None:
    (piece,), _ = read(OpenAIAgents(), document(_lines(*ITEMS[:3]), "1"), document(_lines(*ITEMS[3:]), "2"))
    assert len(piece.spans) == 4


def test_every_type_of_span() -> None:
    made = [
        _span("b", 0, 1, type="handoff", from_agent="A", to_agent="B"),
        _span("c", 1, 2, type="guardrail", name="no secrets", triggered=False),
        _span("d", 2, 3, type="custom", name="turn", data={"sdk_span_type": "turn", "usage": {"input_tokens": 99}}),
        _span("e", 3, 4, type="mcp_tools", server="files", result=["read"]),
        _span("f", 4, 5, type="transcription", model="stt-1"),
        _span("1", 5, 6, type="speech", model="tts-1", first_content_at="2026-01-05T10:00:05.250000+00:00"),
        _span("2", 6, 7, type="speech_group", input=None),
    ]
    piece = _one(_lines(AGENT, *made))
    assert [(span.name, type(span.work).__name__) for span in piece.spans[1:]] == [
        ("handoff to B", "Step"),
        ("no secrets", "Step"),
        ("turn", "Step"),
        ("mcp tools of files", "Step"),
        ("transcription stt-1", "ModelCall"),
        ("speech tts-1", "ModelCall"),
        ("speech group", "Step"),
    ]
    first = calls_of(piece.spans)[-1][1].first_token
    assert first is not None
    assert round(first - piece.spans[6].start, 6) == 0.25


def test_an_error_is_a_word_and_the_tool_has_failed() -> None:
    piece = _one(_lines(AGENT, USED | {"error": {"message": "TimeoutError: too slow", "data": {"x": 1}}}))
    ((span, use),) = tools_of(piece.spans)
    assert (span.error, use.failed) == ("TimeoutError", True)


def test_the_state_of_a_run_has_tokens_and_no_times() -> None:
    path = sample("traces/openai_agents/v1_12_input_cache_write_usage.json")
    piece = _one(path.read_bytes())
    ((span, call),) = calls_of(piece.spans)
    assert (piece.timing, span.start, span.end, piece.title) == ("none", 0.0, 0.0, "historical input")
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.cache_write) == (10, 3, 7)
    assert call.usage.output_tokens == 0


def _state(**fields: object) -> dict[str, object]:
    state: dict[str, object] = {
        "$schemaVersion": "1.18",
        "context": {"usage": {"requests": 0}},
        "current_agent": {"name": "Mailer"},
        "original_input": [{"role": "user", "content": "Write to Bob"}],
        "model_responses": [],
        "generated_items": [],
        "conversation_id": "conv_1",
    }
    return state | fields


def test_the_state_of_a_run_with_answers_and_tools() -> None:
    called = {"type": "function_call", "name": "send", "call_id": "c1", "arguments": '{"to": "Bob"}'}
    items = [
        {"type": "tool_call_item", "raw_item": called},
        {
            "type": "tool_call_output_item",
            "raw_item": {"type": "function_call_output", "call_id": "c1", "output": "sent"},
        },
    ]
    responses: list[dict[str, object]] = [
        {
            "output": [called],
            "usage": {"requests": 1, "input_tokens": 9, "output_tokens": 4, "input_tokens_details": []},
        },
        {"output": [], "usage": {"requests": 1, "input_tokens": 20, "output_tokens": 2}},
    ]
    piece = _one(json.dumps(_state(model_responses=responses, generated_items=items)).encode())
    (first, one), (_, two) = calls_of(piece.spans)
    ((_, use),) = tools_of(piece.spans)
    assert [one.usage.input_tokens, two.usage.input_tokens] == [9, 20]
    assert (use.name, use.issued_by, use.call_id) == ("send", first.id, "c1")
    assert (piece.title, first.session) == ("Write to Bob", "conv_1")


def test_requests_that_are_listed_are_calls_each() -> None:
    entries = [{"input_tokens": 3, "output_tokens": 1}, {"input_tokens": 4, "output_tokens": 1}]
    usage = {"requests": 2, "input_tokens": 7, "output_tokens": 2, "request_usage_entries": entries}
    piece = _one(json.dumps(_state(context={"usage": usage})).encode())
    assert [call.usage.input_tokens for _, call in calls_of(piece.spans)] == [3, 4]


@pytest.mark.parametrize("requests", [0, 3])
def test_a_sum_that_nothing_divides_is_refused(requests: int) -> None:
    usage = {"requests": requests, "input_tokens": 7 * requests}
    pieces, skips = read(OpenAIAgents(), document(json.dumps(_state(context={"usage": usage})).encode()))
    assert pieces == []
    assert [skip.reason for skip in skips.all()] == [
        "a saved state that keeps neither calls nor what each of them used"
    ]


def test_what_cannot_be_read_is_counted() -> None:
    bad = [
        _span("b", 1, 2, type="telepathy"),
        ANSWERED | {"started_at": None},
        {"object": "trace", "id": "trace_lonely", "workflow_name": "x"},
    ]
    pieces, skips = read(OpenAIAgents(), document(_lines(AGENT, *bad)))
    assert [len(piece.spans) for piece in pieces] == [1]
    assert {skip.reason for skip in skips.all()} == {
        "a trace or span that is broken or of an unknown type",
        "a span that never started",
        "a trace without spans",
    }


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    state = json.dumps(_state(context={"usage": {"requests": 1, "input_tokens": 5}})).encode()
    found = document(data.draw(damaged([_lines(*ITEMS), json.dumps({"data": ITEMS}).encode(), state])))
    source = OpenAIAgents()
    source.claims(found.sample())
    for piece in source.read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
