"""A streamed chat completion: what it said, and when its tokens came."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.core.errors import UpstreamError
from headway.wire.followed import MOST_TEXT, FollowedAnswer
from headway.wire.openai import (
    NULL,
    Answer,
    ToolCall,
    WireTimings,
    WireToolCall,
    WireUsage,
    read_timings,
    read_usage,
)

DONE: Final = b"[DONE]"


class _Delta(Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[WireToolCall] | None = None


class _Choice(Struct, gc=False):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    timings: WireTimings | None = None
    model: str | None = None
    error: Raw = NULL


class _OpenToolCall:
    """A tool call whose arguments are still arriving."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []


_decoder: Final = msgspec.json.Decoder(_Chunk)


def only_usage(event_data: bytes) -> bool:
    """What `AnswerStream.feed` says of an event, for one that was fed to it already."""
    try:
        return _only_usage(_decoder.decode(event_data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _only_usage(chunk: _Chunk) -> bool:
    return chunk.usage is not None and not chunk.choices and chunk.error == NULL


class AnswerStream(FollowedAnswer):
    """A chat completion; ``[DONE]`` is its mark."""

    __slots__ = ("_finish_reason", "_model", "_timings", "_tool_at", "_tools", "_usage")

    def __init__(self, max_text: int = MOST_TEXT) -> None:
        super().__init__(max_text)
        self._tools: list[_OpenToolCall] = []
        self._tool_at: dict[int, _OpenToolCall] = {}
        self._finish_reason: str | None = None
        self._model: str | None = None
        self._usage: WireUsage | None = None
        self._timings: WireTimings | None = None

    @property
    def complete(self) -> bool:
        """Whether the answer came to its end: ``[DONE]``, or at least a reason to have stopped."""
        return self.done or self._finish_reason is not None

    def feed(self, event_data: bytes, now: float) -> bool:
        """One event. JSON of another shape teaches nothing and is no error.

        Returns:
            Whether it tells the usage and nothing of the answer: what ``stream_options.include_usage`` adds.

        Raises:
            UpstreamError: the data is neither JSON nor ``[DONE]``.
        """
        if event_data == DONE:
            self.done = True
            return False
        try:
            chunk = _decoder.decode(event_data)
        except msgspec.ValidationError:
            return False
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UpstreamError(
                f"The engine sent an event of {len(event_data)} bytes that is not valid JSON: {error}.",
                fix="Check that the upstream URL is an OpenAI-compatible /v1 endpoint.",
            ) from error
        for choice in chunk.choices or ():
            delta = choice.delta
            if delta is not None and (delta.content or delta.tool_calls or delta.reasoning_content or delta.reasoning):
                self._delta(delta, choice.index, now)
            if choice.finish_reason is not None and not choice.index:
                self._finish_reason = choice.finish_reason
        if self._model is None:
            self._model = chunk.model
        if chunk.timings is not None:
            self._timings = chunk.timings
        if chunk.error is not NULL and chunk.error != NULL:
            self.failed = True
        if chunk.usage is None:
            return False
        self._usage = chunk.usage
        return _only_usage(chunk)

    def answer(self) -> Answer:
        """What the stream has said so far."""
        return Answer(
            content="".join(self._text),
            tool_calls=tuple(ToolCall(tool.id, tool.name, "".join(tool.arguments)) for tool in self._tools),
            finish_reason=self._finish_reason,
            usage=read_usage(self._usage, self._timings),
            engine=read_timings(self._timings),
            model=self._model,
        )

    def _delta(self, delta: _Delta, index: int, now: float) -> None:
        content = delta.content
        self._token(now)
        if content and self.first_visible is None:
            self.first_visible = now
        if index:
            return  # only the first choice is kept: what a client without ``n`` would read
        if content:
            self._keep(content, self._text)
        if delta.tool_calls:
            for piece in delta.tool_calls:
                self._tool_piece(piece)

    def _tool_piece(self, piece: WireToolCall) -> None:
        tool = self._tool_at.get(piece.index)
        if tool is None or (piece.id and tool.id and piece.id != tool.id):  # some engines number every call 0
            tool = self._tool_at[piece.index] = _OpenToolCall(piece.id or "")
            self._tools.append(tool)
        if piece.id:
            tool.id = piece.id
        if piece.function is None:
            return
        if piece.function.name:
            tool.name = piece.function.name
        if piece.function.arguments:
            self._keep(piece.function.arguments, tool.arguments)
