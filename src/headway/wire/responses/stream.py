"""A streamed answer of OpenAI's Responses API: what it said, and when its tokens came."""

from typing import Final

import msgspec
from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.wire.followed import MOST_TEXT, FollowedAnswer
from headway.wire.openai import Answer, ToolCall
from headway.wire.responses.answer import FIX, OutputItem, WireResponse, answered, tool_call

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_VISIBLE: Final = "response.output_text.delta"
_DELTAS: Final = frozenset(
    {
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    }
)
"""Beside the visible one: what counts as a token."""


class _Event(Struct):
    type: str = ""
    delta: str | None = None
    item: OutputItem | None = None
    response: WireResponse | None = None


_decoder: Final = msgspec.json.Decoder(_Event)


class ResponseStream(FollowedAnswer):
    """A response; its last event holds all of it, so text and tools are kept only for one that never comes to that."""

    __slots__ = ("_last", "_tools")

    def __init__(self, max_text: int = MOST_TEXT) -> None:
        super().__init__(max_text)
        self._tools: list[ToolCall] = []
        self._last = WireResponse()

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end."""
        return self.done

    def feed(self, event_data: bytes, now: float) -> bool:
        """One event. JSON of another shape, and types that are not known, teach nothing.

        Returns:
            False: usage comes with events that tell more.

        Raises:
            UpstreamError: the data is not JSON.
        """
        try:
            event = _decoder.decode(event_data)
        except msgspec.ValidationError:
            return False
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UpstreamError(
                f"The engine sent an event of {len(event_data)} bytes that is not valid JSON: {error}.", fix=FIX
            ) from error
        kind = event.type
        if kind == _VISIBLE and event.delta:
            self._say(event.delta, now)
        elif kind in _DELTAS and event.delta:
            self._token(now)
        elif event.item is not None and kind == "response.output_item.done":
            self._item(event.item)
        elif event.response is not None:
            self._last = event.response
            self.done = kind in _ENDS
        if kind in {"error", "response.failed"}:
            self.failed = True
        return False

    def answer(self) -> Answer:
        """What the stream has said so far; once it has ended, what its last event says, for that holds all."""
        if self._last.output:
            return answered(self._last)
        return msgspec.structs.replace(answered(self._last), content="".join(self._text), tool_calls=tuple(self._tools))

    def _item(self, item: OutputItem) -> None:
        call = tool_call(item)
        if call is not None and self._room >= len(call.arguments):
            self._room -= len(call.arguments)
            self._tools.append(call)
