"""Expected values are read by hand from the files: times, ids and counts of the runs in them."""

import json

import pytest
from claims import calls_of, claimed, files_of, length, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import ModelCall, Retrieval, Span
from headway.trace.sources.langsmith.export import LangSmith
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

ROOT = "11111111-1111-4111-8111-111111111111"
CALL = "22222222-2222-4222-8222-222222222222"
TOOL = "33333333-3333-4333-8333-333333333333"


def _run(run: str = CALL, kind: str = "llm", **fields: object) -> dict[str, object]:
    return {
        "id": run,
        "trace_id": ROOT,
        "parent_run_id": None if run == ROOT else ROOT,
        "name": kind,
        "run_type": kind,
        "start_time": "2026-01-05T10:00:00.000000",
        "end_time": "2026-01-05T10:00:04.000000",
        "inputs": {},
        "outputs": {},
        **fields,
    }


def _pieces(*values: object, lines: bool = False) -> list[Piece]:
    data = "\n".join(map(json.dumps, values)) if lines else json.dumps(values[0])
    pieces, skips = read(LangSmith(), document(data.encode()))
    assert not skips.all()
    return pieces


def _call(**fields: object) -> tuple[Span, ModelCall, Piece]:
    (piece,) = _pieces(_run() | fields)
    ((span, call),) = calls_of(piece.spans)
    return span, call, piece


def _real(name: str) -> tuple[Span, ModelCall, Piece]:
    path = sample(f"traces/langsmith/{name}.json")
    (piece,), skips = read(LangSmith(), document(path.read_bytes(), path.name))
    assert not skips.all()
    ((span, call),) = calls_of(piece.spans)
    return span, call, piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(LangSmith()) == files_of("langsmith")


def test_a_call_of_the_python_sdk() -> None:
    span, call, piece = _real("langsmith_py_wrap_openai_")
    assert (piece.task, piece.title) == ("d0d84d31923d4cb594a840a0a0087578", "howdy")
    assert span.start == pytest.approx(1728680303.298773, abs=1e-6)
    assert length(span) == 1.1183
    assert (call.model, call.provider, call.stream) == ("gpt-4o-mini-2024-07-18", "openai", False)
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read) == (9, 9, 0)
    assert (call.first_token, call.finish_reason) == (None, "stop")


def test_reasoning_is_a_part_of_the_output() -> None:
    span, call, _ = _real("langsmith_py_wrap_openai_reasoning")
    assert length(span) == 15.1381
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.reasoning) == (43, 2497, 1408)


def test_the_first_token_is_the_first_that_is_not_empty() -> None:
    """The first chunk, 0.4 ms earlier, holds nothing but a role."""
    span, call, piece = _real("langsmith_py_wrap_openai_stream")
    assert call.first_token is not None
    assert call.last_token is not None
    assert round(call.first_token - span.start, 4) == 1.2388
    assert call.first_visible == call.first_token
    assert round(call.last_token - span.start, 4) == 1.316  # "?", before the chunks that end the stream
    assert (call.stream, piece.remarks) == (True, ())


def test_a_patch_of_the_javascript_sdk_names_its_run_by_its_order_alone() -> None:
    span, call, piece = _real("langsmith_js_wrap_openai_stream")
    assert piece.task == "33c08c32435c4788b973b5bee4a31f87"
    assert (span.start, length(span)) == (1728803135.809, 0.854)  # written in milliseconds
    assert (call.usage.input_tokens, call.usage.output_tokens) == (9, 9)


def test_an_agent_has_the_ttft_of_its_calls() -> None:
    """langsmith-sdk#1618: TTFT is null for agents."""
    events = [
        {"name": "start", "time": "2026-01-05T10:00:00"},
        {"name": "new_token", "time": "2026-01-05T10:00:01", "kwargs": {"token": ""}},
        {"name": "new_token", "time": "2026-01-05T10:00:02", "kwargs": {"token": "Hel"}},
        {"name": "new_token", "time": "2026-01-05T10:00:03", "kwargs": {"token": "lo"}},
    ]
    (piece,) = _pieces([_run(ROOT, "chain", first_token_time=None), _run(events=events)])
    ((span, call),) = calls_of(piece.spans)
    assert call.first_token is not None
    assert round(call.first_token - span.start, 6) == 2.0


@pytest.mark.parametrize(
    ("delta", "visible"),
    [
        ({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]}, False),
        ({"choices": [{"delta": {"reasoning_content": "hm"}}]}, False),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}, True),
    ],
)
def test_a_first_token_may_be_one_that_nobody_sees(delta: object, visible: bool) -> None:
    event = {"name": "new_token", "time": "2026-01-05T10:00:01", "kwargs": {"token": delta}}
    span, call, _ = _call(events=[event])
    assert call.first_token == span.start + 1
    assert (call.first_visible is not None) is visible


def test_the_recorded_first_token_is_taken_with_a_remark() -> None:
    span, call, piece = _call(first_token_time="2026-01-05T10:00:01")
    assert call.first_token == span.start + 1
    assert piece.remarks == ("The first token of 1 call is the first chunk that came, which may have been empty.",)


def test_a_recorded_first_token_at_the_end_is_none() -> None:
    _, call, piece = _call(first_token_time="2026-01-05T10:00:04", prompt_tokens=5, completion_tokens=50)
    assert call.first_token is None
    assert any("TTFT is unknown" in remark for remark in piece.remarks)


def test_a_stream_without_usage_has_unknown_tokens() -> None:
    _, call, _ = _call(outputs={"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}, prompt_tokens=0)
    assert (call.usage.input_tokens, call.usage.output_tokens) == (None, None)
    assert call.answer is not None


def test_usage_of_langchain_holds_the_cache() -> None:
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": "",
            "tool_calls": [{"name": "search", "args": {"q": "x"}, "id": "call_1", "type": "tool_call"}],
            "usage_metadata": {"input_tokens": 100, "output_tokens": 7, "input_token_details": {"cache_read": 60}},
            "response_metadata": {"model_name": "claude-sonnet"},
        },
    }
    asked = [[{"lc": 1, "type": "constructor", "id": ["x", "HumanMessage"], "kwargs": {"content": "Find x"}}]]
    _, call, _ = _call(inputs={"messages": asked}, outputs={"generations": [[{"text": "", "message": message}]]})
    assert (call.usage.input_tokens, call.usage.cache_read, call.usage.output_tokens) == (100, 60, 7)
    assert call.model == "claude-sonnet"
    assert [(ref.id, ref.name) for ref in call.tool_calls] == [("call_1", "search")]
    assert call.prompt is not None
    assert [(part.role, part.chars) for part in call.prompt] == [("user", 6)]


def test_totals_of_langsmith_are_taken_for_calls_only_and_with_a_remark() -> None:
    (piece,) = _pieces(
        [_run(ROOT, "chain", prompt_tokens=20), _run(prompt_tokens=20, completion_tokens=3, total_cost="0.0021")]
    )
    ((_, call),) = calls_of(piece.spans)
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost) == (20, 3, 2100)
    assert any("estimates" in remark for remark in piece.remarks)


def test_a_tool_and_the_call_that_it_answers() -> None:
    result = {
        "output": {"type": "tool", "name": "search", "tool_call_id": "call_1", "content": "found", "status": "error"}
    }
    (piece,) = _pieces(
        [_run(ROOT, "chain"), _run(TOOL, "tool", name="search", inputs={"input": '{"q": "x"}'}, outputs=result)]
    )
    ((span, use),) = tools_of(piece.spans)
    assert (use.name, use.call_id, use.failed) == ("search", "call_1", True)
    assert (span.parent, length(span)) == (next(one.id for one in piece.spans if one.parent is None), 4.0)


def test_a_retriever_and_an_error() -> None:
    kept = _run(TOOL, "retriever", outputs={"documents": [1, 2, 3]})
    broken = _run(CALL, "llm", error="RateLimitError('429')\n\nTraceback (most recent call last): …", outputs=None)
    (piece,) = _pieces([_run(ROOT, "chain"), kept, broken])
    assert [span.work.results for span in piece.spans if isinstance(span.work, Retrieval)] == [3]
    assert [span.error for span in piece.spans] == [None, None, "RateLimitError"]


def test_a_runs_own_session_is_its_project_and_no_session() -> None:
    plain, thread = _run(session_id="a-project"), _run(extra={"metadata": {"thread_id": "t-1"}})
    assert [_pieces(one)[0].spans[0].session for one in (plain, thread)] == [None, "t-1"]


def test_runs_inside_runs() -> None:
    child = {key: value for key, value in _run().items() if key not in {"trace_id", "parent_run_id"}}
    (piece,) = _pieces(_run(ROOT, "chain", child_runs=[child], inputs={"question": "Why?"}))
    root, call = piece.spans
    assert (call.parent, piece.title) == (root.id, "Why?")


def test_lines_pages_and_lists_are_the_same() -> None:
    runs = [_run(ROOT, "chain"), _run()]
    assert _pieces(runs) == _pieces(*runs, lines=True) == _pieces({"runs": runs, "cursors": {}})


def test_what_cannot_be_read_is_counted() -> None:
    bad: list[dict[str, object]] = [_run(start_time=None), _run(TOOL, events="no"), {"run_type": "llm", "inputs": {}}]
    pieces, skips = read(LangSmith(), document(json.dumps([_run(ROOT, "chain"), *bad]).encode()))
    assert [len(piece.spans) for piece in pieces] == [2]
    assert {(skip.reason, skip.count) for skip in skips.all()} == {
        ("a run that says no time of its start, or in no known shape", 1),
        ("a field of the wrong type, left out: events", 1),
        ("a run without an id", 1),
    }


MADE = [
    json.dumps(
        {
            "post": [
                _run(ROOT, "chain", dotted_order=f"20260105T100000000000Z{ROOT}"),
                _run(
                    dotted_order=f"20260105T100000000000Z{ROOT}.20260105T100000000000Z{CALL}",
                    events=[{"name": "new_token"}],
                ),
            ],
            "patch": [{"id": CALL, "outputs": {"usage_metadata": {"input_tokens": 3, "output_tokens": 1}}}],
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
    _survives(data.draw(damaged([path.read_bytes() for path in sorted(sample("traces/langsmith").glob("*.json"))])))


def _survives(data: bytes) -> None:
    source, found = LangSmith(), document(data)
    source.claims(found.sample())
    for piece in source.read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
