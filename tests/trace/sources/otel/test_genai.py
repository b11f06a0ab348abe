"""One span of each dialect, and what it means."""

import json
from typing import Any

import pytest
from genai_spans import AT, CHAT, Attributes, call, meant, tool

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse
from headway.trace.sources.digests import arguments_digest, part
from headway.trace.sources.otel.attributes import TABLE
from headway.wire.otel import RawEvent


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
        ("mlflow.spanInputs", "mlflow.spanOutputs"),
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


def test_mlflows_inputs_are_what_a_call_was_asked() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    made = call({"mlflow.spanType": "CHAT_MODEL", "mlflow.spanInputs": json.dumps(asked)})
    assert made.model == "m"
    assert made.prompt is not None
    assert [(part.role, part.chars) for part in made.prompt] == [("user", 2)]


def test_no_attribute_says_two_things() -> None:
    names = [name for under in TABLE.values() for name in under]
    assert len(names) == len(set(names))
