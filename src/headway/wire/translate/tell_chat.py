"""An answer, told as OpenAI's chat completions are."""

from typing import Any, Final

import msgspec

from headway.core.usage import Usage
from headway.wire.translate.conversation import Call, Conversation, Text, Thought
from headway.wire.translate.said import (
    Argued,
    Began,
    Called,
    Counted,
    Ended,
    Event,
    Faulted,
    Hidden,
    Reason,
    Reply,
    Said,
    Signed,
    Thinking,
)

_REASONS: Final[dict[Reason, str]] = {
    "stop": "stop",
    "length": "length",
    "tools": "tool_calls",
    "refused": "content_filter",
}


class ChatTelling:
    """As `Telling`. Thought is told as ``reasoning_content``, as most engines do; signatures have no place.

    Args:
        asked: the request.
        created: when it was asked; whole seconds since the epoch.
    """

    def __init__(self, asked: Conversation, created: int) -> None:
        self._model = asked.model
        self._created = created
        self._wants_usage = asked.wants_usage
        self._id = ""
        self._calls = 0
        self._ended = False
        self._usage = Usage()

    def whole(self, reply: Reply) -> bytes:
        """As `Telling.whole`."""
        self._begin(reply.id, reply.model)
        choice = {
            "index": 0,
            "message": _message(reply.parts),
            "finish_reason": _REASONS[reply.reason or "stop"],
            "logprobs": None,
        }
        body = self._head("chat.completion") | {"choices": [choice]}
        usage = usage_document(reply.usage)
        return msgspec.json.encode(body if usage is None else body | {"usage": usage})

    def tell(self, event: Event) -> bytes:
        """As `Telling.tell`."""
        told = b""
        match event:
            case Began():
                self._begin(event.id, event.model)
                told = self._delta(role="assistant", content="")
            case Said():
                told = self._delta(content=event.text)
            case Thinking():
                told = self._delta(reasoning_content=event.text)
            case Called():
                self._calls += 1
                function = {"name": event.name, "arguments": ""}
                call = {"index": self._calls - 1, "id": event.id, "type": "function", "function": function}
                told = self._delta(tool_calls=[call])
            case Argued():
                call = {"index": self._calls - 1, "function": {"arguments": event.piece}}
                told = self._delta(tool_calls=[call])
            case Ended():
                self._ended = True
                told = self._chunk([_choice({}, _REASONS[event.reason])])
            case Counted():
                self._usage = event.usage
            case Signed() | Hidden() | Faulted():
                pass
        return told

    def end(self) -> bytes:
        """As `Telling.end`."""
        if not self._ended:
            return b""
        usage = usage_document(self._usage) if self._wants_usage else None
        told = b"" if usage is None else self._chunk([], usage=usage)
        return told + b"data: [DONE]\n\n"

    def _begin(self, answer_id: str, model: str) -> None:
        self._id = f"chatcmpl-{answer_id.removeprefix('chatcmpl-')}"
        self._model = model or self._model

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _delta(self, **delta: Any) -> bytes:  # noqa: ANN401 - JSON
        return self._chunk([_choice(delta, None)])

    def _chunk(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:  # noqa: ANN401 - JSON
        chunk = self._head("chat.completion.chunk") | {"choices": choices} | fields
        return b"data: %b\n\n" % msgspec.json.encode(chunk)


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason}


def _message(parts: list[Text | Thought | Call]) -> dict[str, Any]:
    texts = [part.text for part in parts if isinstance(part, Text)]
    thought = "".join([part.text for part in parts if isinstance(part, Thought)])
    calls = [part for part in parts if isinstance(part, Call)]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) if texts else None, "refusal": None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in calls
        ]
    return message


def usage_document(usage: Usage) -> dict[str, Any] | None:
    """``usage`` as the API words it; details that are unknown are left out, and ``None`` where nothing is known."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    given, written = usage.input_tokens or 0, usage.output_tokens or 0
    document: dict[str, Any] = {
        "prompt_tokens": given,
        "completion_tokens": written,
        "total_tokens": given + written,
    }
    details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    if known := {name: count for name, count in details.items() if count is not None}:
        document["prompt_tokens_details"] = known
    if usage.reasoning is not None:
        document["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return document
