"""An answer of Anthropic's Messages API, heard."""

from typing import Final

import msgspec

from headway.core.errors import UpstreamError
from headway.wire.anthropic.answer import FIX, Block, WireMessage, WireUsage, read_usage
from headway.wire.anthropic.stream import Delta, read_event
from headway.wire.translate.arguments import as_text
from headway.wire.translate.ids import original_id
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
    Said,
    Signed,
    Thinking,
)

_REASONS: Final[dict[str, Reason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tools",
    "refusal": "refused",
}


class AnthropicHearing:
    """As `Hearing`."""

    def __init__(self) -> None:
        self._usage = WireUsage()
        self.over = False

    def whole(self, body: bytes) -> list[Event]:
        """As `Hearing.whole`."""
        try:
            message = msgspec.json.decode(body, type=WireMessage)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UpstreamError(f"The engine's answer is not a message: {error}.", fix=FIX) from error
        heard = self._began(message)
        for block in message.content or ():
            heard += _opened(block)
            if block.type == "tool_use":
                heard.append(Argued(as_text(block.input)))
            elif block.type == "thinking" and block.signature:
                heard.append(Signed(block.signature))
        return [*heard, _ended(message.stop_reason, message.stop_sequence), *self.end()]

    def feed(self, event_data: bytes) -> list[Event]:
        """As `Hearing.feed`."""
        event = read_event(event_data)
        heard: list[Event] = []
        match event.type:
            case "message_start":
                heard = self._began(event.message or WireMessage())
            case "content_block_start" if event.content_block is not None:
                heard = _opened(event.content_block)
            case "content_block_delta" if event.delta is not None:
                heard = _added(event.delta)
            case "message_delta":
                heard = self._closing(event.delta or Delta(), event.usage)
            case "message_stop":
                self.over = True
                heard = self.end()
            case "error":
                heard = [Faulted("unknown" if event.error is None else event.error.message)]
            case _:
                pass
        return heard

    def end(self) -> list[Event]:
        """As `Hearing.end`."""
        usage, self._usage = self._usage, WireUsage()
        return [] if usage == WireUsage() else [Counted(read_usage(usage))]

    def _began(self, message: WireMessage) -> list[Event]:
        if message.usage is not None:
            self._usage = message.usage
        return [Began(message.id or "", message.model or "")]

    def _closing(self, delta: Delta, usage: WireUsage | None) -> list[Event]:
        if usage is not None:
            self._usage = self._usage.updated(usage)
        return [] if delta.stop_reason is None else [_ended(delta.stop_reason, delta.stop_sequence)]


def _opened(block: Block) -> list[Event]:
    """What a block says by itself; in a stream it mostly comes empty."""
    match block.type:
        case "text":
            return [Said(block.text)] if block.text else []
        case "thinking":
            return [Thinking(block.thinking)] if block.thinking else []
        case "redacted_thinking":
            return [Hidden(block.data or "")]
        case "tool_use":
            return [Called(original_id(block.id or ""), block.name or "")]
        case _:
            return []


def _added(delta: Delta) -> list[Event]:
    if delta.text:
        return [Said(delta.text)]
    if delta.partial_json:
        return [Argued(delta.partial_json)]
    if delta.thinking:
        return [Thinking(delta.thinking)]
    return [Signed(delta.signature)] if delta.signature else []


def _ended(reason: str | None, stop: str | None) -> Ended:
    return Ended(_REASONS.get(reason or "", "stop"), stop)
