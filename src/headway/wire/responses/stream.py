"""A streamed answer of OpenAI's Responses API: what it said, and when its tokens came."""

from typing import Final

import msgspec
from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.core.span import Itl
from headway.wire.gaps import Gaps
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


class ResponseStream:
    """Follows the events of one answer; times are the caller's, in epoch seconds.

    Args:
        max_text: characters of text that are kept while the answer is not complete; what is beyond is only timed.
    """

    __slots__ = (
        "_gaps",
        "_last",
        "_room",
        "_text",
        "_tools",
        "done",
        "failed",
        "first_token",
        "first_visible",
        "last_token",
    )

    def __init__(self, max_text: int = 64 * 1024 * 1024) -> None:
        self.done = False
        """The event that ends an answer was seen."""
        self.failed = False
        self.first_token: float | None = None
        self.first_visible: float | None = None
        self.last_token: float | None = None
        self._room = max_text
        self._text: list[str] = []
        self._tools: list[ToolCall] = []
        self._gaps = Gaps()
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

    def itl(self) -> Itl | None:
        """Summary of the gaps between token events."""
        return self._gaps.summary()

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

    def _say(self, text: str, now: float) -> None:
        self._token(now)
        if self.first_visible is None:
            self.first_visible = now
        if self._room >= len(text):
            self._room -= len(text)
            self._text.append(text)

    def _token(self, now: float) -> None:
        last, self.last_token = self.last_token, now
        if last is None:
            self.first_token = now
        else:
            self._gaps.add(now - last)
