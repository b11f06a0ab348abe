"""GET /openapi.json: what the gateway answers, as an OpenAPI 3.1 document.

It names what Headway reads and says itself; the rest of a call and its answer is between the caller and the engine.
"""

from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec

from headway.gateway.openapi_shapes import Schema, reference, schemas
from headway.gateway.urgency import DEADLINE
from headway.policy.headers import TASK_HEADER, TRACE_HEADER
from headway.wire.dialect import Dialect
from headway.wire.dialects import ALL, COUNT_TOKENS, EMBEDDINGS, MESSAGES

PATH: Final = b"/openapi.json"
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_EVENTS: Final = "text/event-stream"
_WORDS: Final = {
    "openai-chat": ("Chat", "Ask for a chat completion, whole or streamed"),
    "openai-responses": ("Responses", "Ask for a response of OpenAI's Responses API, whole or streamed"),
    "openai-embeddings": ("Embeddings", "Ask for vectors"),
    "anthropic-messages": ("Messages", "Ask for a message of Anthropic's API, whole or streamed"),
    "anthropic-count-tokens": ("CountTokens", "Ask how long a prompt is"),
}
"""By dialect: what its shapes' names begin with, and what is done at its path."""
_UNASKED: Final = (EMBEDDINGS, COUNT_TOKENS)
"""Dialects without streams."""
_STATUSES: Final = {
    "400": "The request cannot be used; the message names the field.",
    "401": "No key, or one that is not known.",
    "403": "The key does not allow this, or a name or a page called that this gateway does not serve.",
    "404": "No replica serves this model, or none in this dialect.",
    "413": "The body is longer than the gateway takes.",
    "429": "A limit of the key, its tenant or the task is reached. Says which, and when it frees.",
    "4XX": "What else keeps the request from being served. An engine's refusal passes with its own status.",
    "502": "The engine cannot be reached, or its answer cannot be used.",
    "503": "No replica can take the call now. `retry-after` says when to try again.",
    "504": "The engine was late, or fell silent.",
    "5XX": "What else went wrong, at the engine or in the gateway.",
}


@cache
def document() -> bytes:
    """The document as JSON; it is the same for every gateway of one version."""
    return msgspec.json.encode(_document())


def _document() -> dict[str, Any]:
    calls = {f"/v1{dialect.path.decode()}": {"post": _call(dialect)} for dialect in ALL}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway",
            "version": version("headway"),
            "summary": "One endpoint for agents, in front of models and replicas.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"x-api-key": []}],
        "paths": {**calls, **_besides()},
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _call(dialect: Dialect) -> Schema:
    named, summary = _WORDS[dialect.name]
    content: Schema = {_JSON: {"schema": reference(f"{named}Answer")}}
    if dialect not in _UNASKED:
        content[_EVENTS] = {}
    error = reference("AnthropicError" if dialect in {MESSAGES, COUNT_TOKENS} else "OpenAIError")
    return {
        "operationId": dialect.name,
        "summary": f"{summary}.",
        "parameters": [
            _header(TASK_HEADER, "The task that this call belongs to; without it, the gateway finds out."),
            _header(TRACE_HEADER, "W3C's trace context: its trace is the task, where the other header names none."),
            _header(DEADLINE.decode(), "Seconds that the caller will wait."),
        ],
        "requestBody": _body({_JSON: f"{named}Request"}),
        "responses": {
            "200": {"description": "The engine's answer, or its translation.", "content": content},
            **_failures(error, *_STATUSES),
        },
    }


def _besides() -> dict[str, Schema]:
    openai, prometheus = reference("OpenAIError"), {"text/plain": {"schema": {"type": "string"}}}
    models = {_JSON: {"schema": {"anyOf": [reference("Models"), reference("AnthropicModels")]}}}
    health = {_JSON: {"schema": reference("Health")}}
    return {
        "/v1/traces": {"post": _traces()},
        "/v1/models": _get(
            "models",
            "List the models that may be asked for; in Anthropic's shape for callers who send `anthropic-version`.",
            {"200": {"description": "The models.", "content": models}, **_failures(openai, "401", "403", "4XX", "502")},
        ),
        "/health": _get(
            "health",
            "Tell whether calls can be served. Needs no key.",
            {
                "200": {"description": "All replicas can, or some.", "content": health},
                "503": {"description": "None can.", "content": health},
                **_failures(openai, "4XX"),
            },
        ),
        "/metrics": _get(
            "metrics",
            "Figures for Prometheus.",
            {"200": {"description": "The page.", "content": prometheus}, **_failures(openai, "401", "403", "4XX")},
        ),
        **_own(),
        PATH.decode(): _get(
            "openapi",
            "This document. Needs no key.",
            {
                "200": {"description": "OpenAPI 3.1.", "content": {_JSON: {"schema": {"type": "object"}}}},
                **_failures(openai, "4XX"),
            },
        ),
    }


def _own() -> dict[str, Schema]:
    """What a tenant sees of itself."""
    failures = _failures(reference("OpenAIError"), "401", "403", "4XX", "503")

    def shown(name: str, summary: str, content: Schema) -> Schema:
        told = {"200": {"description": "What there is of the key's tenant.", "content": content}}
        return _get(name, f"{summary} Needs a key.", {**told, **failures})

    document: Schema = {_JSON: {"schema": {"type": "object"}}}
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    task = shown("own-task", "Explain one of the tenant's tasks, as `headway explain --json` does.", document)
    task["get"]["parameters"] = [name]
    return {
        "/v1/headway/tasks": shown("own-tasks", "List the tenant's newest tasks.", document),
        "/v1/headway/tasks/{name}": task,
        "/v1/headway/use": shown("own-use", "Tell the tenant's limits and use, and those of its keys.", document),
        "/v1/headway/metrics": shown(
            "own-metrics", "Tell the tenant's calls and tokens, for Prometheus.", {"text/plain": {"schema": {}}}
        ),
    }


def _traces() -> Schema:
    refused: Schema = {_JSON: {"schema": reference("OTLPError")}, _PROTOBUF: {"schema": {"type": "string"}}}
    either: Schema = {
        _JSON: {"schema": {"anyOf": [reference("OTLPError"), reference("OpenAIError")]}},
        _PROTOBUF: {"schema": {"type": "string"}},
    }
    return {
        "operationId": "traces",
        "summary": "Take the spans of an instrumented agent, as OTLP over HTTP.",
        "parameters": [
            {"name": "content-encoding", "in": "header", "schema": {"enum": ["gzip", "identity"]}, "required": False}
        ],
        "requestBody": _body({_JSON: "TracesRequest", _PROTOBUF: None}),
        "responses": {
            "200": {
                "description": "Taken; what was no span is counted.",
                "content": {_JSON: {"schema": reference("TracesAnswer")}, _PROTOBUF: {"schema": {"type": "string"}}},
            },
            "400": {"description": "The body is no OTLP.", "content": refused},
            "415": {"description": "Another type or packing than are taken.", "content": either},
            "501": {"description": "This gateway records nothing.", "content": refused},
            "503": {"description": "Too many messages wait to be read.", "content": refused},
            "4XX": {"description": _STATUSES["4XX"], "content": either},
        },
    }


def _get(name: str, summary: str, responses: Schema) -> Schema:
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


def _body(shapes: dict[str, str | None]) -> Schema:
    return {
        "required": True,
        "content": {media: {"schema": reference(name) if name else {}} for media, name in shapes.items()},
    }


def _failures(shape: Schema, *statuses: str) -> Schema:
    return {status: {"description": _STATUSES[status], "content": {_JSON: {"schema": shape}}} for status in statuses}


def _header(name: str, description: str) -> Schema:
    return {"name": name, "in": "header", "description": description, "required": False, "schema": {"type": "string"}}
