"""Observations in each of the export's shapes, whole and damaged."""

import json

import pytest
from claims import calls_of, length
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample
from langfuse_rows import TRACE, call_of, observation, one

from headway.core.span import Retrieval
from headway.trace.sources.langfuse.export import Langfuse
from headway.trace.sources.skips import Skips


def test_a_first_token_at_the_end_is_none() -> None:
    """langfuse#3554: TTFT shows the full generation time."""
    span, piece = call_of(
        completionStartTime="2026-01-05T10:00:04.000Z", usageDetails={"input": 9, "output": 30, "total": 39}
    )
    ((_, call),) = calls_of([span])
    assert call.first_token is None
    assert any("no" in remark and "TTFT" in remark for remark in piece.remarks)


def test_a_first_token_in_between_is_kept() -> None:
    span, _ = call_of(completionStartTime="2026-01-05T10:00:01.250Z")
    ((_, call),) = calls_of([span])
    assert call.first_token is not None
    assert round(call.first_token - span.start, 6) == 1.25


@pytest.mark.parametrize(("latency", "ttft"), [(4.0, 1.25), (4000, 1250), (None, 1.25)])
def test_the_unit_of_ttft_is_that_of_the_latency(latency: float | None, ttft: float) -> None:
    span, _ = call_of(latency=latency, timeToFirstToken=ttft)
    ((_, call),) = calls_of([span])
    assert call.first_token is not None
    assert round(call.first_token - span.start, 6) == 1.25


def test_an_error_is_a_word() -> None:
    span, _ = call_of(level="ERROR", statusMessage="openai.RateLimitError: 429 for org-abc, try again in 6s")
    assert span.error == "RateLimitError"


def test_every_type_of_observation() -> None:
    kinds = [
        "SPAN",
        "EVENT",
        "GENERATION",
        "AGENT",
        "TOOL",
        "CHAIN",
        "RETRIEVER",
        "EVALUATOR",
        "EMBEDDING",
        "GUARDRAIL",
    ]
    rows = [
        observation(
            id=f"{number:016x}", type=kind, name="x", endTime=None if kind == "EVENT" else "2026-01-05T10:00:01Z"
        )
        for number, kind in enumerate(kinds, 1)
    ]
    piece = one({"data": rows, "meta": {"page": 1}})
    works = [type(span.work).__name__ for span in piece.spans]
    assert works == [
        "Step", "Step", "ModelCall", "Step", "ToolUse", "Step", "Retrieval", "Step", "Retrieval", "Step",
    ]  # fmt: skip
    assert isinstance(piece.spans[6].work, Retrieval)
    assert piece.spans[1].end == piece.spans[1].start  # an event is a moment, not something unfinished


def test_rest_pages_of_one_trace_are_one_task() -> None:
    one = document(json.dumps({"data": [observation()], "meta": {"page": 1}}).encode(), "1.json")
    two = document(json.dumps({"data": [observation(id="a" * 16)], "meta": {"page": 2}}).encode(), "2.json")
    (piece,), _ = read(Langfuse(), one, two)
    assert [span.id for span in piece.spans] == ["00f067aa0ba902b7", "a" * 16]


def test_a_trace_of_the_rest_api_with_its_observations() -> None:
    piece = one(
        {
            "id": TRACE,
            "timestamp": "2026-01-05T10:00:00Z",
            "userId": None,
            "sessionId": "s1",
            "input": '"How far is the moon?"',
            "htmlPath": "/x",
            "observations": [observation()],
        }
    )
    assert (piece.title, piece.spans[0].session, piece.task) == ("How far is the moon?", "s1", TRACE)


def test_rows_of_blob_storage_are_in_snake_case_and_utc() -> None:
    lines: list[dict[str, object]] = [
        {
            "id": "b7ad6b7169203331",
            "trace_id": TRACE,
            "type": "GENERATION",
            "start_time": "2026-01-05 10:00:00.000000",
            "end_time": "2026-01-05 10:00:02.500000",
            "provided_model_name": "gpt-5",
            "usage_details": {"input": 10, "output": 5, "total": 15},
            "parent_observation_id": "",
        },
        {
            "id": TRACE,
            "timestamp": "2026-01-05 10:00:00.000000",
            "user_id": "",
            "session_id": "s2",
            "tags": [],
            "input": "Why?",
        },
    ]
    data = "\n".join(map(json.dumps, lines)).encode()
    (piece,), _ = read(Langfuse(), document(data, "observations.jsonl"))
    ((span, call),) = calls_of(piece.spans)
    assert (span.start, length(span), span.parent, span.session) == (1_767_607_200.0, 2.5, None, "s2")
    assert (call.model, call.usage.input_tokens, piece.title) == ("gpt-5", 10, "Why?")


def test_ids_that_are_uuids_become_ids_that_w3c_allows() -> None:
    trace = "0AF76519-16CD-43DD-8448-EB211C80319C"
    parent, child = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    piece = one(
        [observation(id=parent, traceId=trace), observation(id=child, traceId=trace, parentObservationId=parent)]
    )
    assert piece.task == TRACE
    assert piece.spans[1].parent == piece.spans[0].id
    assert len({len(span.id) for span in piece.spans} | {16}) == 1


def test_traces_with_ids_of_observations_only_say_what_to_export() -> None:
    listing = {
        "id": TRACE,
        "timestamp": "2026-01-05T10:00:00Z",
        "userId": None,
        "sessionId": None,
        "observations": ["a"],
    }
    pieces, skips = read(Langfuse(), document(json.dumps({"data": [listing]}).encode()))
    assert pieces == []
    assert [skip.reason for skip in skips.all()] == [
        "a trace whose observations are listed by id only: export the observations"
    ]


def test_a_bad_row_costs_no_more_than_itself() -> None:
    rows = [observation(startTime="yesterday"), observation(id=7), observation(id="c" * 16)]
    (piece,), skips = read(Langfuse(), document(json.dumps({"data": [observation(), *rows]}).encode()))
    assert len(piece.spans) == 2
    assert {(skip.reason, skip.count) for skip in skips.all()} == {
        ("an observation whose start is no time", 1),
        ("a trace or observation that is broken or in no known shape", 1),
    }


MADE = [
    json.dumps(
        {
            "trace": {"id": TRACE, "timestamp": "2026-01-05T10:00:00Z", "userId": None, "sessionId": None},
            "observations": [
                observation(metadata='{"attributes":{"ai.operationId":"ai.streamText"}}', usageDetails={"input": 3}),
                observation(
                    id="d" * 16, type="TOOL", parentObservationId="00f067aa0ba902b7", input={"a": [1, {"b": 2}]}
                ),
            ],
        }
    ).encode()
]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    _survives(data.draw(damaged(MADE)))


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    folder = sample("traces/langfuse")
    names = ["vercel-aisdk-2025-11-17", "autogen-2025-06-06", "llamaindex-2025-06-05", "openai-agents-2025-09-30"]
    _survives(data.draw(damaged([(folder / f"{name}.trace.json").read_bytes() for name in names])))


def _survives(data: bytes) -> None:
    source, found = Langfuse(), document(data)
    source.claims(found.sample())
    for piece in source.read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
