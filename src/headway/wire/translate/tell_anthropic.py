"""An answer, told in the dialect of Anthropic's Messages API."""

from typing import Any, Final

import msgspec

from headway.core.usage import Usage
from headway.wire.anthropic.answer import usage_document
from headway.wire.translate.arguments import as_object
from headway.wire.translate.conversation import Call, Conversation, Text, Thought
from headway.wire.translate.ids import plain_id
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
    "stop": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    "refused": "refusal",
}


class AnthropicTelling:
    """As `Telling`. A stream begins with counts of 0, for chats tell them at their end; the last event has them."""

    def __init__(self, asked: Conversation) -> None:
        self._model = asked.model
        self._index = -1
        self._open: type[Said | Thinking | Called] | None = None
        self._ended: Ended | None = None
        self._usage = Usage()
        self._begun = False

    def whole(self, reply: Reply) -> bytes:
        """As `Telling.whole`."""
        message = self._message(reply.id, reply.model)
        message["content"] = [_block(part) for part in reply.parts]
        message |= _stopped(Ended(reply.reason or "stop", reply.stop))
        message["usage"] = usage_document(reply.usage)
        return msgspec.json.encode(message)

    def tell(self, event: Event) -> bytes:
        """As `Telling.tell`."""
        told = b""
        match event:
            case Began():
                self._begun = True
                told = _event("message_start", message=self._message(event.id, event.model))
            case Said():
                block = {"type": "text", "text": ""}
                told = self._piece(Said, block, {"type": "text_delta", "text": event.text})
            case Thinking():
                block = {"type": "thinking", "thinking": "", "signature": ""}
                told = self._piece(Thinking, block, {"type": "thinking_delta", "thinking": event.text})
            case Signed():
                block = {"type": "thinking", "thinking": "", "signature": ""}
                delta = {"type": "signature_delta", "signature": event.signature}
                told = self._piece(Thinking, block, delta) + self._close()
            case Hidden():
                told = self._start(None, {"type": "redacted_thinking", "data": event.data}) + self._stop()
            case Called():
                block: dict[str, Any] = {"type": "tool_use", "id": plain_id(event.id), "name": event.name, "input": {}}
                told = self._start(Called, block)
            case Argued():
                told = self._delta({"type": "input_json_delta", "partial_json": event.piece})
            case Ended():
                self._ended = event
            case Counted():
                self._usage = event.usage
            case Faulted():
                pass
        return told

    def end(self) -> bytes:
        """As `Telling.end`."""
        if self._ended is None or not self._begun:
            return b""
        usage = usage_document(self._usage)
        delta = _event("message_delta", delta=_stopped(self._ended), usage=usage)
        return self._close() + delta + _event("message_stop")

    def _message(self, answer_id: str, model: str) -> dict[str, Any]:
        return {
            "id": answer_id if answer_id.startswith("msg_") else f"msg_{answer_id}",
            "type": "message",
            "role": "assistant",
            "model": model or self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def _piece(self, kind: type[Said | Thinking], block: dict[str, Any], delta: dict[str, Any]) -> bytes:
        start = b"" if self._open is kind else self._start(kind, block)
        return start + self._delta(delta)

    def _start(self, kind: type[Said | Thinking | Called] | None, block: dict[str, Any]) -> bytes:
        closing = self._close()
        self._index += 1
        self._open = kind
        return closing + _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return self._stop()

    def _stop(self) -> bytes:
        return _event("content_block_stop", index=self._index)


def _block(part: Text | Thought | Call) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thought(hidden=str(hidden)) if hidden:
            return {"type": "redacted_thinking", "data": hidden}
        case Thought():
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case Call():
            block = {"type": "tool_use", "id": plain_id(part.id), "name": part.name}
            return block | {"input": as_object(part.arguments)}


def _stopped(ended: Ended) -> dict[str, Any]:
    reason = "stop_sequence" if ended.stop is not None and ended.reason == "stop" else _REASONS[ended.reason]
    return {"stop_reason": reason, "stop_sequence": ended.stop}


def _event(kind: str, **fields: Any) -> bytes:  # noqa: ANN401 - JSON
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))
