"""The one table of attribute names: what each generation of the OTel GenAI conventions, and each dialect, calls a fact.

All these conventions are still in development, so no other file may know their names. Within a row the first name that
a span carries wins: current names before old ones, conventions before dialects, bare names last.
"""

from collections.abc import Mapping
from typing import Final, Literal

Fact = Literal[
    "operation",  # what the span did, in its dialect's word: see `OPERATIONS`
    "provider",
    "model",  # the one that answered, else the one asked for
    "stream",
    "input",  # tokens, with what the cache gave and took
    "uncached",  # input tokens where a dialect leaves out what the cache gave and took
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "usage",  # all counts in one JSON object
    "ttft",  # seconds
    "queue",  # seconds in the engine's queue
    "cost",  # US dollars
    "finish",
    "attempt",  # which try this was; the first is 1
    "resend",  # how often an HTTP request had been sent before; the first is 0
    "agent",
    "entity",  # a name whose meaning depends on the operation: an agent's or a tool's
    "tool",
    "call_id",
    "arguments",
    "result",
    "corpus",
    "session",
    "error",  # a word for what went wrong
    "failed",
    "success",
    "system",  # instructions
    "prompt",  # messages
    "answer",  # messages, or a text
    "answer_calls",  # the tool calls of the answer, where they stand apart
    "numbered",  # any of the first messages of those that stand in attributes by number: see `INDEXED`
    "request",  # a whole request as JSON
    "response",  # a whole response as JSON
    "inputs",  # a call's whole request, a tool's arguments: whatever the span is
    "outputs",
    "events",  # messages as events, as JSON
    "method",
    "url",
    "status",  # of HTTP
    "duration",  # seconds; on a record written after the work that it is about
    "asked",  # what the user typed
    "issued_by",  # the span of the call that asked for a tool
    "awaited",  # false: what started it did not wait for it
    "inferred",  # true: a tool that was not timed where it ran
    "marks",  # what Headway's own record has beyond the conventions, as JSON
]
"""What an attribute says."""

Facts = dict[Fact, object]
"""What a span's attributes say, whatever they are called there."""

TABLE: Final[dict[Fact, tuple[str, ...]]] = {
    "operation": (
        "gen_ai.operation.name",  # OTel 1.27
        "openinference.span.kind",
        "traceloop.span.kind",
        "llm.request.type",  # Traceloop, on calls
        "ai.operationId",  # Vercel AI SDK
        "span.type",  # Claude Code
        "mlflow.spanType",
        "sentry.op",
    ),
    "provider": (
        "gen_ai.provider.name",  # OTel 1.37
        "gen_ai.system",  # OTel until 1.36
        "llm.provider",
        "llm.system",
        "ai.model.provider",
        "mlflow.llm.provider",
    ),
    "model": (
        "gen_ai.response.model",
        "gen_ai.request.model",
        "ai.response.model",
        "ai.model.id",
        "llm.model_name",
        "llm.response.model",
        "llm.request.model",
        "mlflow.llm.model",
        "embedding.model_name",
        "reranker.model_name",
        "model_name",  # Pydantic AI
        "model",  # Claude Code
    ),
    "stream": (
        "gen_ai.request.stream",  # OTel 1.41
        "gen_ai.is_streaming",
        "llm.is_streaming",  # Traceloop
        "gen_ai.response.streaming",  # Sentry
    ),
    "input": (
        "gen_ai.usage.input_tokens",  # OTel 1.27
        "gen_ai.usage.prompt_tokens",  # OTel 1.26
        "llm.token_count.prompt",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
        "llm.usage.prompt_tokens",
        "input_token_count",  # Gemini CLI
    ),
    "uncached": ("input_tokens",),  # Claude Code
    "output": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
        "llm.usage.completion_tokens",
        "output_tokens",
        "output_token_count",
    ),
    "cache_read": (
        "gen_ai.usage.cache_read.input_tokens",  # OTel 1.40
        "gen_ai.usage.cache_read_input_tokens",  # Traceloop
        "gen_ai.usage.cached_tokens",
        "gen_ai.usage.input_tokens.cached",  # Sentry
        "gen_ai.usage.details.cache_read_tokens",  # Pydantic AI
        "gen_ai.usage.details.cache_read_input_tokens",
        "gen_ai.usage.details.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
        "ai.usage.inputTokenDetails.cacheReadTokens",
        "cache_read_tokens",
        "cache_read_input_tokens",  # MLflow
        "cached_content_token_count",  # Gemini CLI
    ),
    "cache_write": (
        "gen_ai.usage.cache_write.input_tokens",  # GenAI 0.1
        "gen_ai.usage.cache_creation.input_tokens",  # OTel 1.40
        "gen_ai.usage.cache_creation_input_tokens",  # Traceloop
        "gen_ai.usage.input_tokens.cache_write",  # Sentry
        "gen_ai.usage.details.cache_write_tokens",
        "gen_ai.usage.details.cache_creation_input_tokens",
        "llm.token_count.prompt_details.cache_write",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
        "cache_creation_tokens",
        "cache_creation_input_tokens",  # MLflow
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",  # OTel 1.41
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.output_tokens.reasoning",  # Sentry
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
        "ai.usage.outputTokenDetails.reasoningTokens",
        "thoughts_token_count",  # Gemini CLI
    ),
    "usage": ("mlflow.chat.tokenUsage",),
    "ttft": (
        "gen_ai.response.time_to_first_chunk",  # OTel 1.41
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.response.time_to_first_token",
        "gen_ai.server.time_to_first_token",
        "gen_ai.latency.time_to_first_token",  # vLLM
        "ai.response.msToFirstChunk",
        "ai.stream.msToFirstChunk",
        "ttft_ms",
    ),
    "queue": ("gen_ai.latency.time_in_queue",),
    "cost": (
        "operation.cost",  # Pydantic AI
        "llm.cost.total",
        "gen_ai.usage.cost",
        "gen_ai.usage.cost_usd",
        "gen_ai.cost.total_tokens",  # Sentry
        "mlflow.llm.cost",
        "total_cost",  # inside MLflow's
        "cost_usd",  # Claude Code
    ),
    "finish": (
        "gen_ai.response.finish_reasons",
        "gen_ai.response.finish_reason",
        "ai.response.finishReason",
        "ai.finishReason",
        "gen_ai.completion.0.finish_reason",
        "llm.finish_reason",
        "stop_reason",
    ),
    "attempt": ("gen_ai.request.attempt", "attempt"),
    "resend": ("http.request.resend_count", "http.resend_count"),
    "agent": (
        "gen_ai.agent.name",
        "gen_ai.workflow.name",  # OTel 1.41 only
        "agent.name",
        "agent_name",  # Pydantic AI
        "ai.telemetry.functionId",
        "graph.node.id",
    ),
    "tool": (
        "gen_ai.tool.name",  # OTel 1.31
        "tool.name",
        "ai.toolCall.name",
        "tool_name",
    ),
    "call_id": (
        "gen_ai.tool.call.id",
        "gen_ai.tool.call_id",  # Gemini CLI
        "tool.id",
        "tool_call.id",
        "ai.toolCall.id",
        "tool_use_id",
    ),
    "arguments": (
        "gen_ai.tool.call.arguments",  # OTel 1.38
        "gen_ai.tool.input",  # Sentry
        "gen_ai.tool.arguments",
        "tool_arguments",  # Pydantic AI
        "tool.parameters",
        "ai.toolCall.args",
        "ai.toolCall.input",
        "gcp.vertex.agent.tool_call_args",
        "traceloop.entity.input",
        "input.value",
        "tool_input",
    ),
    "result": (
        "gen_ai.tool.call.result",
        "gen_ai.tool.output",
        "gen_ai.tool.result",
        "tool_response",
        "ai.toolCall.result",
        "ai.toolCall.output",
        "gcp.vertex.agent.tool_response",
        "traceloop.entity.output",
        "output.value",
        "tool_output",
    ),
    "corpus": ("gen_ai.data_source.id", "db.collection.name", "db.system.name", "db.system"),
    "session": (
        "gen_ai.conversation.id",  # OTel 1.34
        "session.id",
        "sessionId",
        "langfuse.session.id",
        "traceloop.association.properties.session_id",
        "ai.telemetry.metadata.sessionId",
        "gcp.vertex.agent.session_id",
        "mlflow.trace.session",
        "exgentic.session.id",
    ),
    "error": ("error.type", "exception.type"),
    "failed": ("error", "is_error"),
    "success": ("success", "gen_ai.tool.status"),
    "system": ("gen_ai.system_instructions", "ai.prompt.system"),
    "prompt": (
        "gen_ai.input.messages",  # OTel 1.37
        "gen_ai.request.messages",  # Sentry
        "ai.prompt.messages",
        "ai.prompt",
    ),
    "answer": (
        "gen_ai.output.messages",
        "gen_ai.output.text",
        "gen_ai.response.text",  # Sentry
        "ai.response.text",
        "ai.result.text",
    ),
    "answer_calls": ("gen_ai.response.tool_calls", "ai.response.toolCalls", "ai.result.toolCalls"),
    "numbered": (
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.role",
        "gen_ai.completion.0.content",
        "llm.input_messages.0.message.role",
        "llm.input_messages.0.message.content",
        "llm.output_messages.0.message.role",
        "llm.output_messages.0.message.content",
        "llm.prompts.0.prompt.text",
    ),
    "request": (
        "gcp.vertex.agent.llm_request",
        "request_data",  # Logfire
    ),
    "response": ("gcp.vertex.agent.llm_response", "response_data"),
    "inputs": ("mlflow.spanInputs",),
    "outputs": ("mlflow.spanOutputs",),
    "method": ("http.request.method", "http.method"),
    "url": ("url.full", "http.url"),
    "status": ("http.response.status_code", "http.status_code", "status_code"),
    "events": ("events",),
    "duration": ("duration",),
    "entity": ("traceloop.entity.name", "traceloop.workflow.name", "operation.name"),
    "asked": ("user_prompt",),  # Claude Code
    "issued_by": ("headway.tool.issued_by",),
    "awaited": ("headway.awaited",),
    "inferred": ("headway.tool.inferred",),
    "marks": ("headway.call.marks",),
}

OLD_CALLS: Final = "gen_ai.system"
"""What a call carries beside its model that says nothing of its operation: conventions before OTel 1.27."""

STREAM_ENDS: Final = "logfire."
"""How the scopes begin whose records with a duration are ends of streams."""

EXCLUSIVE_NAMES: Final = "claude_code."
"""How the names of spans begin whose bare ``input_tokens`` leave out what the cache gave and took."""

INDEXED: Final[dict[str, Literal["prompt", "answer"]]] = {
    "gen_ai.prompt.": "prompt",  # Traceloop
    "gen_ai.completion.": "answer",
    "llm.input_messages.": "prompt",  # OpenInference
    "llm.prompts.": "prompt",
    "llm.output_messages.": "answer",
}
"""How the names of attributes begin that hold messages by number."""

EVENTS: Final[dict[str, tuple[Literal["prompt", "answer"], str]]] = {
    "gen_ai.system.message": ("prompt", "system"),  # OTel 1.28 to 1.36
    "gen_ai.user.message": ("prompt", "user"),
    "gen_ai.assistant.message": ("prompt", "assistant"),
    "gen_ai.tool.message": ("prompt", "tool"),
    "gen_ai.choice": ("answer", "assistant"),
    "gen_ai.content.prompt": ("prompt", "user"),  # OTel until 1.27
    "gen_ai.content.completion": ("answer", "assistant"),
}
"""Events that are messages, and the role of each that does not say it."""

DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
"""The event whose attributes are those that its span may leave out for their size (OTel 1.37)."""

RESULTS: Final = ("retrieval.documents.", ".document.content")
"""How the names of attributes begin and end of which there is one for each document found."""

HOSTS: Final = ("host.id", "host.name", "k8s.node.name", "hostname")
"""Attributes of a resource that tell whose clock its spans were timed by."""

FIRST_TOKEN_EVENTS: Final = frozenset(
    {
        "ai.stream.firstChunk",  # Vercel AI SDK
        "First Token Stream Event",  # OpenInference
        "llm.content.completion.chunk",  # Traceloop
    }
)
"""Events whose first is the arrival of the first chunk of a streamed answer."""

_MILLISECONDS: Final = frozenset({"ai.response.msToFirstChunk", "ai.stream.msToFirstChunk", "ttft_ms"})
"""Names whose values are in ms; all other times are in seconds."""

_FACTS: Final[dict[str, Fact]] = {name: fact for fact, names in TABLE.items() for name in names}


def facts(attributes: Mapping[str, object]) -> Facts:
    """What the attributes say. A value that is null or empty says nothing."""
    found: Facts = {}
    fact_of = _FACTS.get
    for name, value in attributes.items():
        fact = fact_of(name)
        if fact is not None and (value or (value is not None and value != "")):
            found[fact] = value if fact not in found else _first(fact, attributes)
    if "ttft" in found and any(map(attributes.__contains__, _MILLISECONDS)):
        found["ttft"] = _first("ttft", {name: _in_seconds(name, attributes[name]) for name in attributes})
    return found


def _first(fact: Fact, attributes: Mapping[str, object]) -> object:
    """The value under the first of a fact's names that has one."""
    for name in TABLE[fact]:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def _in_seconds(name: str, value: object) -> object:
    if name not in _MILLISECONDS:
        return value
    try:
        return float(str(value)) / 1000
    except ValueError:
        return None


def host(resource: Mapping[str, object]) -> str | None:
    """Whose clock a resource's spans, or the span that says it itself, were timed by."""
    for name in HOSTS:
        told = resource.get(name)
        if told:
            return str(told)
    return None
