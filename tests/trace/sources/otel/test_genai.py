"""One span of each dialect, and what it means."""

import json
from typing import Any

import pytest

from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolCallRef, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, part
from headway.trace.sources.fields.messages import Parts
from headway.trace.sources.otel.genai import canonical
from headway.wire.otel import RawEvent, RawSpan

AT = 1_790_000_000.0
Attributes = dict[str, object]
CHAT: Attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def meant(attributes: Attributes, name: str = "span", **fields: Any) -> Span:  # noqa: ANN401 - a span's own fields
    """A span of ten seconds."""
    raw = RawSpan(trace="t", id="s", name=name, start=AT, end=AT + 10, attributes=attributes, **fields)
    return canonical(raw, Parts())


def call(attributes: Attributes, name: str = "span", **fields: Any) -> ModelCall:  # noqa: ANN401 - as above
    work = meant(attributes, name, **fields).work
    assert isinstance(work, ModelCall)
    return work


def tool(attributes: Attributes, name: str = "span", **fields: Any) -> ToolUse:  # noqa: ANN401 - as above
    work = meant(attributes, name, **fields).work
    assert isinstance(work, ToolUse)
    return work


@pytest.mark.parametrize(
    ("attributes", "name", "work", "canonical_name"),
    [
        ({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}, "x", Step(agent="a"), "invoke_agent a"),
        (
            {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "w"},
            "x",
            Step(agent="w"),
            "invoke_agent w",
        ),
        (
            {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "a"},
            "create_agent a",
            Step(),
            "create_agent a",
        ),
        ({"gen_ai.operation.name": "plan"}, "plan", Step(), "plan"),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}, "x", ToolUse(name="t"), "execute_tool t"),
        (
            {"gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": "docs"},
            "x",
            Retrieval(source="docs"),
            "retrieval docs",
        ),
        (
            {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "e5"},
            "x",
            Retrieval(source="e5"),
            "retrieval e5",
        ),
        ({}, "invoke_agent a", Step(agent="a"), "invoke_agent a"),
        ({}, "execute_tool t", ToolUse(name="t"), "execute_tool t"),
        ({}, "POST /", Step(), "POST /"),
        ({"openinference.span.kind": "AGENT"}, "planner", Step(agent="planner"), "invoke_agent planner"),
        ({"openinference.span.kind": "AGENT", "graph.node.id": "n"}, "x", Step(agent="n"), "invoke_agent n"),
        ({"openinference.span.kind": "CHAIN"}, "chain", Step(), "chain"),
        ({"openinference.span.kind": "TOOL"}, "search", ToolUse(name="search"), "execute_tool search"),
        ({"openinference.span.kind": "RERANKER"}, "rank", Retrieval(), "rank"),
        (
            {"traceloop.span.kind": "workflow", "traceloop.entity.name": "w"},
            "w.workflow",
            Step(agent="w"),
            "invoke_agent w",
        ),
        ({"traceloop.span.kind": "task", "traceloop.entity.name": "t"}, "t.task", Step(), "t.task"),
        ({"traceloop.span.kind": "tool", "traceloop.entity.name": "t"}, "t.tool", ToolUse(name="t"), "execute_tool t"),
        (
            {"ai.operationId": "ai.generateText", "operation.name": "ai.generateText"},
            "ai.generateText",
            Step(),
            "ai.generateText",
        ),
        (
            {"ai.operationId": "ai.streamText", "ai.telemetry.functionId": "f"},
            "ai.streamText",
            Step(agent="f"),
            "invoke_agent f",
        ),
        (
            {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "t"},
            "ai.toolCall",
            ToolUse(name="t"),
            "execute_tool t",
        ),
        (
            {"agent_name": "a", "model_name": "m", "gen_ai.usage.input_tokens": 9},
            "agent run",
            Step(agent="a"),
            "invoke_agent a",
        ),
        ({"gen_ai.tool.name": "t"}, "running tool", ToolUse(name="t"), "execute_tool t"),
        (
            {"span.type": "interaction"},
            "claude_code.interaction",
            Step(agent="claude_code"),
            "invoke_agent claude_code",
        ),
        ({"span.type": "tool", "tool_name": "Bash"}, "claude_code.tool", ToolUse(name="Bash"), "execute_tool Bash"),
        ({"span.type": "tool.execution"}, "claude_code.tool.execution", Step(), "claude_code.tool.execution"),
        ({"span.type": "tool.blocked_on_user"}, "claude_code.tool.blocked_on_user", HumanWait(), "human_wait"),
        (
            {"gen_ai.operation.name": "agent_call", "gen_ai.agent.name": "gemini-cli"},
            "x",
            Step(agent="gemini-cli"),
            "invoke_agent gemini-cli",
        ),
        (
            {"gen_ai.operation.name": "tool_call", "gen_ai.tool.name": "t", "gen_ai.tool.call_id": "c"},
            "x",
            ToolUse(name="t", call_id="c"),
            "execute_tool t",
        ),
        ({"mlflow.spanType": '"AGENT"'}, "solver", Step(agent="solver"), "invoke_agent solver"),
        ({"sentry.op": "gen_ai.execute_tool", "gen_ai.tool.name": "t"}, "x", ToolUse(name="t"), "execute_tool t"),
        ({}, "agent_run [root_agent]", Step(agent="root_agent"), "invoke_agent root_agent"),
        ({}, "execute_event_loop_cycle", Step(), "execute_event_loop_cycle"),
    ],
)
def test_every_dialects_word_for_a_span_has_one_meaning(
    attributes: Attributes, name: str, work: object, canonical_name: str
) -> None:
    span = meant(attributes, name)
    assert (span.work, span.name) == (work, canonical_name)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai"}, "chat m"),
        ({"gen_ai.system": "OpenAI", "gen_ai.request.model": "m"}, "chat m"),
        ({"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.system": "openai"}, "ChatOpenAI"),
        ({"llm.request.type": "chat", "gen_ai.request.model": "m", "gen_ai.system": "OpenAI"}, "openai.chat"),
        ({"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m", "ai.model.provider": "openai"}, "x"),
        ({"span.type": "llm_request", "model": "m", "gen_ai.system": "openai"}, "claude_code.llm_request"),
        ({"gen_ai.operation.name": "llm_call", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai"}, "x"),
        ({"mlflow.spanType": "CHAT_MODEL", "mlflow.llm.model": "m", "mlflow.llm.provider": "openai"}, "Completions"),
        ({"sentry.op": "gen_ai.chat", "gen_ai.request.model": "m", "gen_ai.system": "openai"}, "chat m"),
    ],
)
def test_every_dialects_call_is_a_call(attributes: Attributes, name: str) -> None:
    span = meant(attributes, name)
    assert span.name == "chat m"
    assert isinstance(span.work, ModelCall)
    assert (span.work.model, span.work.provider) == ("m", "openai")


@pytest.mark.parametrize("word", ["agent_step", "plan", "GUARDRAIL", "fetch_response"])
def test_a_step_that_tells_its_models_sums_is_no_call(word: str) -> None:
    sums: Attributes = {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 900}
    assert meant({"gen_ai.operation.name": word} | sums).work == Step()


def test_the_model_that_answered_is_told_before_the_one_that_was_asked() -> None:
    assert call(CHAT | {"gen_ai.response.model": "m-2026-01-01"}).model == "m-2026-01-01"


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        ("az.ai.openai", "azure.ai.openai"),
        ("vertex_ai", "gcp.vertex_ai"),
        ("gemini", "gcp.gemini"),
        ("Anthropic", "anthropic"),
        ("aws.bedrock", "aws.bedrock"),
    ],
)
def test_renamed_providers_have_their_new_names(recorded: str, told: str) -> None:
    assert call(CHAT | {"gen_ai.system": recorded}).provider == told


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_creation.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_write.input_tokens": 30,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        {  # Traceloop
            "gen_ai.usage.prompt_tokens": "100",
            "gen_ai.usage.completion_tokens": "20",
            "gen_ai.usage.cache_read_input_tokens": "60",
            "gen_ai.usage.cache_creation_input_tokens": "30",
            "gen_ai.usage.reasoning_tokens": "5",
        },
        {  # OpenInference
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 20,
            "llm.token_count.prompt_details.cache_read": 60,
            "llm.token_count.prompt_details.cache_write": 30,
            "llm.token_count.completion_details.reasoning": 5,
        },
        {  # Vercel AI SDK
            "ai.usage.inputTokens": 100,
            "ai.usage.outputTokens": 20,
            "ai.usage.cachedInputTokens": 60,
            "ai.usage.inputTokenDetails.cacheWriteTokens": 30,
            "ai.usage.reasoningTokens": 5,
        },
        {  # Sentry
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.input_tokens.cached": 60,
            "gen_ai.usage.input_tokens.cache_write": 30,
            "gen_ai.usage.output_tokens.reasoning": 5,
        },
        {  # Pydantic AI
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.details.cache_read_tokens": 60,
            "gen_ai.usage.details.cache_write_tokens": 30,
            "gen_ai.usage.details.reasoning_tokens": 5,
        },
        {  # Gemini CLI
            "input_token_count": 100,
            "output_token_count": 20,
            "cached_content_token_count": 60,
            "gen_ai.usage.cache_write.input_tokens": 30,
            "thoughts_token_count": 5,
        },
        {  # MLflow, whose counts are one object
            "mlflow.chat.tokenUsage": json.dumps(
                {
                    "input_tokens": 100,
                    "output_tokens": 20,
                    "cache_read_input_tokens": 60,
                    "cache_creation_input_tokens": 30,
                }
            ),
            "gen_ai.usage.reasoning_tokens": 5,
        },
    ],
)
def test_tokens_by_every_name_are_the_same_tokens(attributes: Attributes) -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cache_read=60, cache_write=30, reasoning=5)
    assert call(CHAT | attributes).usage == usage


def test_cache_tokens_are_not_counted_twice_where_the_input_holds_them() -> None:
    usage = call(CHAT | {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 90}).usage
    assert (usage.input_tokens, usage.cache_read) == (100, 90)


def test_an_input_smaller_than_what_was_cached_leaves_it_out_and_gets_it_added() -> None:
    usage = call(CHAT | {"gen_ai.usage.input_tokens": 4, "gen_ai.usage.cache_read.input_tokens": 90}).usage
    assert (usage.input_tokens, usage.cache_read) == (94, 90)


def test_claude_codes_bare_counts_leave_the_cache_out() -> None:
    counts: Attributes = {
        "span.type": "llm_request",
        "model": "m",
        "input_tokens": 500,  # more than was cached, so that only the dialect can tell
        "output_tokens": 20,
        "cache_read_tokens": 300,
        "cache_creation_tokens": 100,
    }
    usage = call(counts, "claude_code.llm_request").usage
    assert usage == Usage(input_tokens=900, output_tokens=20, cache_read=300, cache_write=100)


@pytest.mark.parametrize("counts", [{}, {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}])
def test_no_tokens_and_none_at_all_are_unknown(counts: Attributes) -> None:
    assert call(CHAT | counts).usage == Usage()


@pytest.mark.parametrize("count", ["many", -4, 1.5, True, "nan", 1e30, [], {}])
def test_a_count_that_is_none_is_unknown(count: object) -> None:
    assert call(CHAT | {"gen_ai.usage.input_tokens": count}).usage.input_tokens is None


def test_an_agents_sums_are_no_usage_of_its_own() -> None:
    sums: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.aggregated_usage.input_tokens": 900}
    assert meant(sums, "invoke_agent a").work == Step(agent="a")


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


@pytest.mark.parametrize(
    ("cost", "micro"),
    [(0.0000015, 2), ("0.25", 250_000), (0, 0), (-1, None), ("free", None)],
)
def test_recorded_costs_are_whole_micro_dollars(cost: object, micro: int | None) -> None:
    assert call(CHAT | {"operation.cost": cost}).cost == micro


def test_mlflows_cost_is_the_total() -> None:
    cost = {"mlflow.llm.cost": json.dumps({"input_cost": 0.1, "output_cost": 0.2, "total_cost": 0.3})}
    assert call(CHAT | cost).cost == 300_000


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


@pytest.mark.parametrize(
    ("fields", "attributes", "error", "failed"),
    [
        ({}, {}, None, None),
        ({"failed": False}, {}, None, False),
        ({"failed": True}, {}, "error", True),
        ({"failed": True}, {"error.type": "timeout"}, "timeout", True),
        ({"failed": True}, {"http.response.status_code": 529}, "529", True),
        ({}, {"error.type": "timeout"}, "timeout", True),
        ({}, {"success": False}, "error", True),
        ({}, {"gen_ai.tool.status": "success"}, None, False),
        ({}, {"error": True}, "error", True),
    ],
)
def test_errors_have_a_short_word(
    fields: dict[str, Any], attributes: Attributes, error: str | None, failed: bool | None
) -> None:
    span = meant({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"} | attributes, **fields)
    assert span.error == error
    assert isinstance(span.work, ToolUse)
    assert span.work.failed is failed


def test_the_type_of_an_exception_is_the_error() -> None:
    events = [RawEvent("exception", AT, {"exception.type": "ValueError", "exception.message": "no"})]
    assert meant(CHAT, failed=True, events=events).error == "ValueError"


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
        ("tool_arguments", "tool_response"),
        ("ai.toolCall.args", "ai.toolCall.result"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
        ("gen_ai.tool.input", "gen_ai.tool.output"),
    ],
)
def test_a_tools_arguments_and_result_are_kept_by_digest(arguments: str, result: str) -> None:
    used = tool({"gen_ai.tool.name": "t", arguments: '{"b": 2, "a": 1}', result: "found"})
    assert used.arguments == arguments_digest({"a": 1, "b": 2})
    assert used.result == part("tool", "found")


def test_documents_that_a_retriever_found_are_counted() -> None:
    found: Attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": "one",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.content": "two",
    }
    assert meant(found).work == Retrieval(results=2)


@pytest.mark.parametrize(
    "session", ["gen_ai.conversation.id", "session.id", "sessionId", "gcp.vertex.agent.session_id"]
)
def test_sessions_have_many_names(session: str) -> None:
    assert meant({session: "c1"}).session == "c1"


def test_the_clock_is_told_by_the_host() -> None:
    assert meant({}, resource={"service.name": "a", "host.name": "h1"}).host == "h1"
    assert meant({}, resource={"service.name": "a"}).host is None
    assert meant({"host.name": "h2"}, resource={"service.name": "a"}).host == "h2"  # each span says it itself
    assert meant({"host.name": "h2"}, resource={"host.name": "h1"}).host == "h1"


PROMPT = (part("system", "be brief"), part("user", "how warm?"))
ANSWER = part("assistant", 'looking\nweather({"city":"Rome"})')
CALLS = (ToolCallRef("c1", "weather"),)
CITY = '{"city":"Rome"}'


@pytest.mark.parametrize(
    "attributes",
    [
        {  # OTel 1.37
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "be brief"}]),
            "gen_ai.input.messages": json.dumps(
                [{"role": "user", "parts": [{"type": "text", "content": "how warm?"}]}]
            ),
            "gen_ai.output.messages": json.dumps(
                [
                    {
                        "role": "assistant",
                        "parts": [
                            {"type": "text", "content": "looking"},
                            {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Rome"}},
                        ],
                        "finish_reason": "tool_call",
                    }
                ]
            ),
        },
        {  # Traceloop
            "gen_ai.prompt.0.role": "system",
            "gen_ai.prompt.0.content": "be brief",
            "gen_ai.prompt.1.role": "user",
            "gen_ai.prompt.1.content": '[{"type": "text", "text": "how warm?"}]',
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "looking",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "weather",
            "gen_ai.completion.0.tool_calls.0.arguments": CITY,
        },
        {  # OpenInference, its prompt out of order
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.contents.0.message_content.type": "text",
            "llm.input_messages.1.message.contents.0.message_content.text": "how warm?",
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": "be brief",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "looking",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": CITY,
        },
        {  # Pydantic AI's events as an attribute
            "events": json.dumps(
                [
                    {"event.name": "gen_ai.system.message", "content": "be brief"},
                    {"event.name": "gen_ai.user.message", "content": "how warm?", "role": "user"},
                    {
                        "event.name": "gen_ai.choice",
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": "looking",
                            "tool_calls": [
                                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": CITY}}
                            ],
                        },
                    },
                ]
            ),
        },
        {  # Logfire, MLflow: a whole request and response
            "request_data": json.dumps(
                {
                    "model": "m",
                    "messages": [
                        {"role": "system", "content": "be brief"},
                        {"role": "user", "content": [{"type": "text", "text": "how warm?"}]},
                    ],
                }
            ),
            "response_data": json.dumps(
                {
                    "message": {
                        "role": "assistant",
                        "content": "looking",
                        "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": CITY}}],
                    }
                }
            ),
        },
        {  # Anthropic's shape of the same
            "request_data": json.dumps({"system": "be brief", "messages": [{"role": "user", "content": "how warm?"}]}),
            "response_data": json.dumps(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "looking"},
                        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
                    ],
                }
            ),
        },
    ],
)
def test_messages_in_every_shape_have_the_same_digests(attributes: Attributes) -> None:
    work = call(CHAT | attributes)
    assert (work.prompt, work.answer, work.tool_calls) == (PROMPT, ANSWER, CALLS)


def test_messages_in_events_are_those_of_the_span() -> None:
    events = [
        RawEvent("gen_ai.system.message", AT, {"content": "be brief"}),
        RawEvent("gen_ai.user.message", AT, {"content": "how warm?"}),
        RawEvent("gen_ai.choice", AT, {"message": "looking", "finish_reason": "stop"}),
    ]
    work = call(CHAT, events=events)
    assert (work.prompt, work.answer) == (PROMPT, part("assistant", "looking"))
    details = RawEvent(
        "gen_ai.client.inference.operation.details",
        AT,
        {"gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "how warm?"}]}]},
    )
    assert call(CHAT, events=[details]).prompt == (PROMPT[1],)


def test_vercels_prompt_and_answer_stand_in_attributes_of_their_own() -> None:
    work = call(
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.model.id": "m",
            "ai.prompt.messages": json.dumps([{"role": "user", "content": [{"type": "text", "text": "how warm?"}]}]),
            "ai.response.text": "looking",
            "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "weather", "input": CITY}]),
        }
    )
    assert work.prompt == PROMPT[1:]
    assert work.tool_calls == CALLS


def test_googles_requests_name_roles_their_own_way() -> None:
    request = {
        "model": "m",
        "config": {"system_instruction": "be brief"},
        "contents": [
            {"role": "user", "parts": [{"text": "how warm?"}]},
            {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "weather", "args": {"city": "Rome"}}}]},
            {"role": "user", "parts": [{"function_response": {"name": "weather", "response": "21"}}]},
        ],
    }
    response = {"content": {"role": "model", "parts": [{"text": "21 degrees"}]}}
    work = call(
        {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response)},
        "call_llm",
    )
    assert work.prompt == (*PROMPT, part("assistant", f"weather({CITY})"), part("tool", "21"))
    assert work.answer == part("assistant", "21 degrees")


def test_a_stream_kept_in_pieces_is_one_answer() -> None:
    pieces: Attributes = {
        f"llm.output_messages.{n}.message.content": text for n, text in enumerate(("Mont", "ju", "ïc"))
    }
    assert call(CHAT | pieces).answer == part("assistant", "Montjuïc")


def test_results_of_tools_are_the_tools_whoever_is_said_to_bring_them() -> None:
    brought = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "21"}]}]
    assert call(CHAT | {"gen_ai.input.messages": json.dumps(brought)}).prompt == (part("tool", "21"),)


@pytest.mark.parametrize(
    "told", ["[" * 5000, '[{"role": 7}]', "{}", "[]", '{"messages": 7}', "[[[1]]]", '[{"content": {"a": 1}}]', "\x00"]
)
def test_messages_that_make_no_sense_never_raise(told: str) -> None:
    for name in (
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "request_data",
        "events",
        "gen_ai.prompt.0.content",
    ):
        call(CHAT | {name: told})


def test_messages_that_were_not_kept_are_unknown() -> None:
    work = call(CHAT)
    assert (work.prompt, work.answer, work.tool_calls) == (None, None, ())
