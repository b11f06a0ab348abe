"""The shapes of the OpenAPI document: what is asked and answered, as far as Headway itself reads or says it.

Requests and answers of models have many more fields than are named here. They pass as they are; every object is open.
"""

from typing import Any, Final

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_OBJECT: Final[Schema] = {"type": "object"}
_MAYBE_FLAG: Final[Schema] = {"type": ["boolean", "null"]}
_MAYBE_TEXT: Final[Schema] = {"type": ["string", "null"]}


def reference(name: str) -> Schema:
    """A pointer to one of `schemas`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _record(properties: Schema, *required: str, description: str = "") -> Schema:
    shape: Schema = {"type": "object", "properties": properties}
    if required:
        shape["required"] = list(required)
    return {"description": description, **shape} if description else shape


def _list(of: Schema, **bounds: int) -> Schema:
    return {"type": "array", "items": of, **bounds}


def schemas() -> dict[str, Schema]:
    """All shapes by name."""
    return {**_requests(), **_answers(), **_errors(), **_of_the_gateway()}


def _requests() -> dict[str, Schema]:
    chat_roles = ["system", "developer", "user", "assistant", "tool", "function"]
    return {
        "ChatRequest": _record(
            {
                "model": _TEXT,
                "messages": _list(_record({"role": {"enum": chat_roles}}, "role"), minItems=1),
                "stream": _MAYBE_FLAG,
                "stream_options": {"type": ["object", "null"]},
                "tools": {"type": ["array", "null"], "items": _OBJECT},
                "prompt_cache_key": _MAYBE_TEXT,
            },
            "model",
            "messages",
            description="OpenAI's chat completions.",
        ),
        "ResponsesRequest": _record(
            {
                "model": _TEXT,
                "input": {"type": ["string", "array"], "items": _OBJECT},
                "instructions": _MAYBE_TEXT,
                "stream": _MAYBE_FLAG,
                "tools": {"type": ["array", "null"], "items": _OBJECT},
                "prompt_cache_key": _MAYBE_TEXT,
                "max_output_tokens": {"type": ["integer", "null"]},
            },
            "model",
            description="OpenAI's Responses API.",
        ),
        "EmbeddingsRequest": _record(
            {
                "model": _TEXT,
                "input": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1}]},
            },
            "model",
            "input",
            description="OpenAI's embeddings.",
        ),
        "MessagesRequest": _record(
            {**_asked_of_anthropic(), "max_tokens": {"type": "integer"}, "stream": _MAYBE_FLAG},
            "model",
            "messages",
            "max_tokens",
            description="Anthropic's messages.",
        ),
        "CountTokensRequest": _record(
            _asked_of_anthropic(), "model", "messages", description="Anthropic's counting of tokens."
        ),
        "TracesRequest": _record(
            {"resourceSpans": _list(_OBJECT)}, description="OTLP's ExportTraceServiceRequest, as JSON."
        ),
    }


def _asked_of_anthropic() -> Schema:
    return {
        "model": _TEXT,
        "messages": _list(_record({"role": {"enum": ["user", "assistant", "system"]}}, "role"), minItems=1),
        "system": {"type": ["string", "array", "null"]},
        "tools": {"type": ["array", "null"], "items": _OBJECT},
    }


def _answers() -> dict[str, Schema]:
    return {
        "ChatAnswer": _record({"choices": _list(_OBJECT)}, description="A chat completion, as the engine has it."),
        "ResponsesAnswer": _record({"output": _list(_OBJECT)}, description="A response of OpenAI's Responses API."),
        "EmbeddingsAnswer": _record({"data": _list(_OBJECT)}, description="Vectors, as the engine has them."),
        "MessagesAnswer": _record({"content": _list(_OBJECT)}, description="A message of Anthropic's API."),
        "CountTokensAnswer": _record({"input_tokens": _COUNT}, "input_tokens"),
        "TracesAnswer": _record(
            {"partialSuccess": _record({"rejectedSpans": _TEXT, "errorMessage": _TEXT}, "rejectedSpans")},
            description="OTLP's ExportTraceServiceResponse.",
        ),
    }


def _errors() -> dict[str, Schema]:
    words = "Headway's stable word for what went wrong, e.g. `no_replica`"
    return {
        "OpenAIError": _record(
            {
                "error": _record(
                    {
                        "message": {"type": "string", "description": "What, where and what to do."},
                        "type": _MAYBE_TEXT,
                        "param": _MAYBE_TEXT,
                        "code": {
                            "type": ["string", "integer", "null"],
                            "description": f"{words}; an engine's own error has its own.",
                        },
                    },
                    "message",
                )
            },
            "error",
            description="An error as OpenAI's APIs have it.",
        ),
        "AnthropicError": _record(
            {
                "type": {"const": "error"},
                "error": _record({"type": _TEXT, "message": _TEXT}, "type", "message"),
            },
            "type",
            "error",
            description="An error as Anthropic's API has it.",
        ),
        "OTLPError": _record(
            {"message": _TEXT}, "message", description="google.rpc.Status, in the encoding of the request."
        ),
    }


def _of_the_gateway() -> dict[str, Schema]:
    replica = _record({"id": _TEXT, "healthy": {"type": "boolean"}, "reason": _MAYBE_TEXT}, "id", "healthy")
    model = _record({"id": _TEXT}, "id")
    return {
        "Models": _record({"object": {"const": "list"}, "data": _list(model)}, "object", "data"),
        "AnthropicModels": _record({"data": _list(model), "has_more": {"type": "boolean"}}, "data", "has_more"),
        "Health": _record(
            {
                "status": {"enum": ["ok", "degraded", "down"]},
                "replicas": {**_list(replica), "description": "Left out where callers need a key."},
                "whereabouts": {**_TEXT, "description": "Of several workers: why this one knows of no others' calls."},
            },
            "status",
        ),
    }
