"""A streamed answer of Anthropic's Messages API: what it said, and when its tokens came."""

from typing import Final

import msgspec
from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.wire.anthropic.answer import FIX, Block, WireMessage, WireUsage, read_usage
from headway.wire.followed import MOST_TEXT, FollowedAnswer
from headway.wire.openai import Answer, ToolCall


class Delta(Struct):
    """What an event adds, to a block or to the message."""

    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None


class ErrorDetail(Struct):
    """What went wrong."""

    type: str = ""
    message: str = ""


class Event(Struct):
    """One event of a stream, whatever its type."""

    type: str = ""
    index: int = 0
    message: WireMessage | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: WireUsage | None = None
    error: ErrorDetail | None = None


class _OpenToolUse:
    """A tool call whose input is still arriving."""

    __slots__ = ("id", "input", "name")

    def __init__(self, block: Block) -> None:
        self.id = block.id or ""
        self.name = block.name or ""
        self.input: list[str] = []

    def tool_call(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.input) or "{}")


_decoder: Final = msgspec.json.Decoder(Event)


def read_event(event_data: bytes) -> Event:
    """One event. JSON of another shape is an event without a type.

    Raises:
        UpstreamError: the data is not JSON.
    """
    try:
        return _decoder.decode(event_data)
    except msgspec.ValidationError:
        return Event()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UpstreamError(
            f"The engine sent an event of {len(event_data)} bytes that is not valid JSON: {error}.", fix=FIX
        ) from error


class MessageStream(FollowedAnswer):
    """A message; ``message_stop`` is its mark."""

    __slots__ = ("_model", "_stop_reason", "_tool_at", "_tools", "_usage")

    def __init__(self, max_text: int = MOST_TEXT) -> None:
        super().__init__(max_text)
        self._tools: list[_OpenToolUse] = []
        self._tool_at: dict[int, _OpenToolUse] = {}
        self._stop_reason: str | None = None
        self._model: str | None = None
        self._usage: WireUsage | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end: ``message_stop``, or at least a reason to have stopped."""
        return self.done or self._stop_reason is not None

    def feed(self, event_data: bytes, now: float) -> bool:
        """One event. Types that are not known teach nothing, for the API may add some at any time.

        Returns:
            False: usage comes with events that tell more.

        Raises:
            UpstreamError: the data is not JSON.
        """
        event = read_event(event_data)
        match event.type:
            case "content_block_delta" if event.delta is not None:
                self._delta(event.delta, event.index, now)
            case "content_block_start" if event.content_block is not None:
                self._start(event.content_block, event.index, now)
            case "message_start" if event.message is not None:
                self._model = event.message.model
                self._count(event.message.usage)
            case "message_delta":
                if event.delta is not None:
                    self._stop_reason = event.delta.stop_reason
                self._count(event.usage)
            case "message_stop":
                self.done = True
            case "error":
                self.failed = True
            case _:
                pass
        return False

    def answer(self) -> Answer:
        """What the stream has said so far."""
        return Answer(
            content="".join(self._text),
            tool_calls=tuple([tool.tool_call() for tool in self._tools]),
            finish_reason=self._stop_reason,
            usage=read_usage(self._usage),
            model=self._model,
        )

    def _start(self, block: Block, index: int, now: float) -> None:
        if block.type == "tool_use":
            self._token(now)
            tool = self._tool_at[index] = _OpenToolUse(block)
            self._tools.append(tool)
        elif block.text:
            self._say(block.text, now)

    def _delta(self, delta: Delta, index: int, now: float) -> None:
        if delta.text:
            self._say(delta.text, now)
        elif delta.partial_json:
            self._token(now)
            tool = self._tool_at.get(index)
            if tool is not None:
                self._keep(delta.partial_json, tool.input)
        elif delta.thinking:
            self._token(now)

    def _count(self, usage: WireUsage | None) -> None:
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage.updated(usage)
