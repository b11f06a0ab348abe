"""Expected values are read by hand from the files: times, ids and counts of the observations in them."""

from claims import calls_of, claimed, extent, files_of, length, tools_of
from importing import document, read, sample

from headway.core.span import Step
from headway.trace.sources.langfuse.export import Langfuse
from headway.trace.sources.source import Piece


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
    assert piece.extent is not None
    assert round(piece.extent, 3) == 17.173
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
