"""Expected values are read by hand from the files: times, ids and counts of the observations in them."""

import json

import pytest
from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import Retrieval, Span, Step
from headway.trace.sources.langfuse.export import Langfuse
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _observation(**fields: object) -> dict[str, object]:
    return {
        "id": "00f067aa0ba902b7",
        "traceId": TRACE,
        "type": "GENERATION",
        "name": "answer",
        "startTime": "2026-01-05T10:00:00.000Z",
        "endTime": "2026-01-05T10:00:04.000Z",
        "model": "gpt-5",
        "level": "DEFAULT",
        "parentObservationId": None,
        **fields,
    }


def _one(value: object) -> Piece:
    pieces, skips = read(Langfuse(), document(json.dumps(value).encode()))
    assert not skips.all()
    (piece,) = pieces
    return piece


def _call(**fields: object) -> tuple[Span, Piece]:
    piece = _one([_observation(**fields)])
    (span,) = piece.spans
    return span, piece


def _real(name: str) -> Piece:
    path = sample(f"traces/langfuse/{name}.trace.json")
    pieces, skips = read(Langfuse(), document(path.read_bytes(), path.name))
    assert not skips.all()
    (piece,) = pieces
    return piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Langfuse()) == files_of("langfuse")


def test_a_wrapper_around_a_call_keeps_its_time_and_the_call_its_tokens() -> None:
    piece = _real("agno-2025-06-11")
    (_, outer), (inner, call), (_, _), (_, last) = calls_of(piece.spans)
    assert extent(piece) == 6.991
    assert outer.usage.input_tokens is None  # Langfuse's own estimate, 542, is three times the true count
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (163, 20, 36)
    assert (last.usage.input_tokens, last.usage.output_tokens, last.cost) == (663, 225, 234)
    assert inner.parent == "ca136de468e156c9"
    ((tool, use),) = tools_of(piece.spans)  # its type is SPAN: only its attributes say that it is a tool
    assert (use.name, length(tool)) == ("duckduckgo_search", 0.717)
    assert piece.title == "What is currently trending on Twitter?"
    assert any("estimated by Langfuse" in remark for remark in piece.remarks)


def test_a_single_call_under_its_trace() -> None:
    piece = _real("autogen-2025-06-06")
    ((span, call),) = calls_of(piece.spans)
    assert (piece.task, piece.timing) == ("1b72c51fabed12ae7df83bfd4a09f545", "spans")
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read) == (41, 3, None)
    assert (call.cost, call.first_token, length(span), span.session) == (25, None, 0.628, "session_abc")


def test_spans_that_all_end_at_the_flush_have_no_times() -> None:
    piece = _real("beeai-2025-08-01")
    assert piece.timing == "none"
    assert {(span.start, span.end) for span in piece.spans} == {(0.0, 0.0)}
    assert any("17.173 s lie between" in remark for remark in piece.remarks)
    assert len(piece.spans) == 29
    assert len(calls_of(piece.spans)) == 3  # the events of an answer's end are spans of type GENERATION too
    assert [use.name for _, use in tools_of(piece.spans)] == ["search.wikipedia"]
    assert all(call.usage.input_tokens is None for _, call in calls_of(piece.spans))


def test_a_parent_that_is_not_in_the_file_is_still_named() -> None:
    piece = _real("csharp-agent-with-gemini-2026-03-09")
    hosts = {span.host for span in piece.spans}
    assert len(hosts) == 1  # in each span's own attributes
    assert None not in hosts
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert [length(span) for span, _ in calls] == [6.151, 3.398, 2.922]
    assert [(call.usage.input_tokens, call.usage.output_tokens) for _, call in calls] == [
        (2546, 47),
        (3004, 167),
        (2497, 200),
    ]
    assert [(use.name, length(span)) for span, use in tools] == [("get_custom_report", 2.359), ("final_result", 0.0)]
    assert next(span.parent for span in piece.spans if span.name == "Insights Agent C#") == "1db8118c6ecfd744"
    assert {span.session for span in piece.spans} == {"9714061f-20c0-4d98-9220-1dc7df15c3c2"}
    assert calls[1][1].prompt is not None
    assert [part.role for part in calls[1][1].prompt] == ["system", "user", "assistant", "tool"]


def test_agents_and_tools_of_the_google_adk() -> None:
    piece = _real("google-adk-2025-08-28")
    assert [span.name for span in piece.spans if isinstance(span.work, Step)] == [
        "invocation [hello_app]",
        "invoke_agent hello_agent",
    ]
    assert [
        (length(span), call.usage.input_tokens, call.usage.output_tokens) for span, call in calls_of(piece.spans)
    ] == [
        (0.911, 28, 3),
        (0.924, 39, 6),
    ]
    ((tool, use),) = tools_of(piece.spans)
    assert (use.name, length(tool), tool.parent) == ("say_hello", 0.001, "f6e4c65297e40c96")
    assert piece.title == "hi"


def test_a_tool_of_langgraph_is_known_by_the_message_that_it_returns() -> None:
    piece = _real("langgraph-python-2025-08-22")
    (first, call), (_, last) = calls_of(piece.spans)
    assert (call.model, length(first), extent(piece)) == ("gpt-4o-2024-08-06", 0.848, 2.61)
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read) == (60, 15, 0)
    assert (last.usage.input_tokens, last.usage.output_tokens, last.cost) == (108, 51, 159)
    assert [ref.id for ref in call.tool_calls] == ["call_1oGK863sxQHlPreFhDdEs3yl"]
    ((tool, use),) = tools_of(piece.spans)
    assert (use.name, use.call_id, use.failed) == ("Web-Search", "call_1oGK863sxQHlPreFhDdEs3yl", False)
    assert length(tool) == 0.001
    assert piece.title == "Search the web for 'example' and summarize."


def test_a_completion_of_llamaindex() -> None:
    piece = _real("llamaindex-2025-06-05")
    ((span, call),) = calls_of(piece.spans)
    assert (length(span), call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read) == (
        2.776,
        13,
        81,
        0,
    )
    assert (call.cost, call.provider, piece.title) == (842, "openai", "What is Langfuse?")


def test_agents_inside_agents_and_a_tool_of_no_length() -> None:
    piece = _real("openai-agents-2025-09-30")
    assert [span.name for span in piece.spans if isinstance(span.work, Step)] == [
        "invoke_agent Agent workflow",
        "invoke_agent Hello world",
    ]
    assert [
        (length(span), call.usage.input_tokens, call.usage.output_tokens) for span, call in calls_of(piece.spans)
    ] == [
        (1.036, 55, 15),
        (1.15, 85, 29),
    ]
    ((tool, use),) = tools_of(piece.spans)
    assert (use.name, length(tool)) == ("get_weather", 0.0)
    assert piece.title == "What's the weather in Tokyo?"


def test_usage_of_agents_is_no_calls_and_parallel_tools_overlap() -> None:
    piece = _real("pydantic-ai-tools-2025-12-04")
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert [call.usage.input_tokens for _, call in calls] == [265, 417, 502, 131]
    assert [call.usage.output_tokens for _, call in calls] == [73, 53, 14, 69]
    assert [call.cost for _, call in calls] == [84, 94, 84, 61]
    assert [length(span) for span, _ in tools] == [0.006, 0.005, 0.005]
    ends = [span.end for span, _ in tools]
    assert max(span.start for span, _ in tools) < min(end for end in ends if end is not None)
    agents = [span.name for span in piece.spans if isinstance(span.work, Step) and span.work.agent]
    assert agents == ["invoke_agent joke_agent", "invoke_agent joke_agent", "invoke_agent evaluator_agent"]


def test_the_root_of_the_vercel_sdk_is_no_second_call() -> None:
    piece = _real("vercel-aisdk-2025-11-17")
    ((span, call),) = calls_of(piece.spans)
    assert (span.parent, length(span)) == ("1dc6768109615657", 3.043)
    assert (call.usage.input_tokens, call.usage.output_tokens, call.model) == (62, 85, "gpt-5-2025-08-07")
    ((_, use),) = tools_of(piece.spans)
    assert use.call_id == call.tool_calls[0].id == "call_DgKARp7a7IhJPDczfifMp6Ra"
    assert use.issued_by == span.id


def test_cache_counted_in_the_input_by_otel_is_not_added_again() -> None:
    """langfuse#12306: Langfuse shows 260,421 input tokens where there were 130,213."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 130_213,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.details.cache_read_tokens": 128_955,
        "gen_ai.usage.details.cache_write_tokens": 1_253,
    }
    span, _ = _call(
        metadata=json.dumps({"attributes": attributes, "scope": {"name": "pydantic-ai"}}),
        usageDetails={
            "input": 130_213,
            "output": 40,
            "total": 260_461,
            "input_cache_read": 128_955,
            "input_cache_creation": 1_253,
        },
        costDetails={"total": 0.5},
    )
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.cache_write) == (130_213, 128_955, 1_253)
    assert call.cost is None  # reckoned from counts that are not these


def test_the_total_tells_that_the_input_holds_the_cache() -> None:
    span, piece = _call(usageDetails={"input": 17_903, "input_cached_tokens": 17_817, "output": 100, "total": 18_003})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read) == (17_903, 17_817)
    assert not any("cached tokens" in remark.lower() for remark in piece.remarks)


def test_cache_beside_the_input_is_added_and_the_doubt_is_told() -> None:
    """langfuse#10592: a total of all keys is right where they exclude each other, and not where they do not."""
    span, piece = _call(usageDetails={"input": 86, "input_cached_tokens": 17, "output": 100, "total": 203})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read) == (103, 17)
    assert any("which its export does not tell" in remark for remark in piece.remarks)


def test_cache_that_fits_into_no_input_is_added() -> None:
    span, piece = _call(usageDetails={"input": 5, "cache_read_input_tokens": 900, "output": 7, "total": 912})
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.cache_write) == (905, 900, None)
    assert piece.remarks == ("Cached tokens were added to the input of 1 call, whose counts leave them out.",)


def test_a_cost_reckoned_from_counts_in_doubt_is_unknown() -> None:
    """langfuse#12635: costs come out 2.5 times too high where the cache is priced as input."""
    span, _ = _call(
        usageDetails={"input": 86, "input_cached_tokens": 17, "output": 100, "total": 203}, costDetails={"total": 1.0}
    )
    ((_, call),) = calls_of([span])
    assert call.cost is None


def test_a_cost_that_was_sent_is_kept() -> None:
    span, piece = _call(providedCostDetails={"total": 0.0000125}, costDetails={"total": 0.0000125})
    ((_, call),) = calls_of([span])
    assert call.cost == 13
    assert piece.remarks == ()


def test_a_first_token_at_the_end_is_none() -> None:
    """langfuse#3554: TTFT shows the full generation time."""
    span, piece = _call(
        completionStartTime="2026-01-05T10:00:04.000Z", usageDetails={"input": 9, "output": 30, "total": 39}
    )
    ((_, call),) = calls_of([span])
    assert call.first_token is None
    assert any("no" in remark and "TTFT" in remark for remark in piece.remarks)


def test_a_first_token_in_between_is_kept() -> None:
    span, _ = _call(completionStartTime="2026-01-05T10:00:01.250Z")
    ((_, call),) = calls_of([span])
    assert call.first_token is not None
    assert round(call.first_token - span.start, 6) == 1.25


@pytest.mark.parametrize(("latency", "ttft"), [(4.0, 1.25), (4000, 1250), (None, 1.25)])
def test_the_unit_of_ttft_is_that_of_the_latency(latency: float | None, ttft: float) -> None:
    span, _ = _call(latency=latency, timeToFirstToken=ttft)
    ((_, call),) = calls_of([span])
    assert call.first_token is not None
    assert round(call.first_token - span.start, 6) == 1.25


@pytest.mark.parametrize(
    ("details", "output"),
    [
        ({"input": 9, "output": 20, "output_reasoning": 15, "total": 29}, 20),  # the total tells: held in the output
        ({"input": 9, "output": 5, "output_reasoning": 15, "total": 29}, 20),  # the total tells: apart
        ({"input": 9, "output": 5, "reasoning_tokens": 15}, 20),  # more than the output: apart
    ],
)
def test_reasoning_is_counted_once_in_the_output(details: dict[str, int], output: int) -> None:
    span, _ = _call(usageDetails=details)
    ((_, call),) = calls_of([span])
    assert (call.usage.output_tokens, call.usage.reasoning) == (output, 15)


def test_zero_tokens_are_unknown() -> None:
    span, _ = _call(usageDetails={"input": 0, "output": 0, "total": 0}, totalCost=0)
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (None, None, None)


def test_an_error_is_a_word() -> None:
    span, _ = _call(level="ERROR", statusMessage="openai.RateLimitError: 429 for org-abc, try again in 6s")
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
        _observation(
            id=f"{number:016x}", type=kind, name="x", endTime=None if kind == "EVENT" else "2026-01-05T10:00:01Z"
        )
        for number, kind in enumerate(kinds, 1)
    ]
    piece = _one({"data": rows, "meta": {"page": 1}})
    works = [type(span.work).__name__ for span in piece.spans]
    assert works == [
        "Step", "Step", "ModelCall", "Step", "ToolUse", "Step", "Retrieval", "Step", "Retrieval", "Step",
    ]  # fmt: skip
    assert isinstance(piece.spans[6].work, Retrieval)
    assert piece.spans[1].end == piece.spans[1].start  # an event is a moment, not something unfinished


def test_rest_pages_of_one_trace_are_one_task() -> None:
    one = document(json.dumps({"data": [_observation()], "meta": {"page": 1}}).encode(), "1.json")
    two = document(json.dumps({"data": [_observation(id="a" * 16)], "meta": {"page": 2}}).encode(), "2.json")
    (piece,), _ = read(Langfuse(), one, two)
    assert [span.id for span in piece.spans] == ["00f067aa0ba902b7", "a" * 16]


def test_a_trace_of_the_rest_api_with_its_observations() -> None:
    piece = _one(
        {
            "id": TRACE,
            "timestamp": "2026-01-05T10:00:00Z",
            "userId": None,
            "sessionId": "s1",
            "input": '"How far is the moon?"',
            "htmlPath": "/x",
            "observations": [_observation()],
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


def test_the_usage_of_older_servers() -> None:
    span, _ = _call(usage={"input": 12, "output": 3, "unit": "TOKENS"}, calculatedTotalCost=0.001)
    ((_, call),) = calls_of([span])
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (12, 3, 1000)


def test_ids_that_are_uuids_become_ids_that_w3c_allows() -> None:
    trace = "0AF76519-16CD-43DD-8448-EB211C80319C"
    parent, child = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
    piece = _one(
        [_observation(id=parent, traceId=trace), _observation(id=child, traceId=trace, parentObservationId=parent)]
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
    rows = [_observation(startTime="yesterday"), _observation(id=7), _observation(id="c" * 16)]
    (piece,), skips = read(Langfuse(), document(json.dumps({"data": [_observation(), *rows]}).encode()))
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
                _observation(metadata='{"attributes":{"ai.operationId":"ai.streamText"}}', usageDetails={"input": 3}),
                _observation(
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
