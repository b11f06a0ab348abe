"""An answer of OpenAI's chat completions, heard."""

from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.openai import NULL, WireTimings, WireToolCall, WireUsage, read_usage
from headway.wire.translate.said import (
    Began,
    Counted,
    Ended,
    Event,
    Faulted,
    Reason,
)
from headway.wire.translate.turns import Turns

_FIX: Final = "Check that the upstream URL is an OpenAI-compatible /v1 endpoint."
_DONE: Final = b"[DONE]"
_REASONS: Final[dict[str, Reason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refused",
}


class _Words(Struct):
    """A message, or what a stream adds to one."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[WireToolCall] | None = None


class _Choice(Struct):
    index: int = 0
    message: _Words | None = None
    delta: _Words | None = None
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    """vLLM's and SGLang's: the stop sequence that ended the answer."""


class _Completion(Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    timings: WireTimings | None = None
    error: Raw = NULL


class _Problem(Struct):
    message: str = ""


_decoder: Final = msgspec.json.Decoder(_Completion)


class ChatHearing:
    """As `Hearing`."""

    def __init__(self) -> None:
        self._turns = Turns()
        self._began = False
        self._id = ""
        self._calls = 0
        self._number_at: dict[int, tuple[int, str]] = {}
        """Where the engine's index stands for our number and the call's id."""
        self._reason: str | None = None
        self._stop: str | None = None
        self._usage: WireUsage | None = None
        self._timings: WireTimings | None = None
        self.over = False

    def whole(self, body: bytes) -> list[Event]:
        """As `Hearing.whole`."""
        try:
            completion = _decoder.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UpstreamError(f"The engine's answer is not a chat completion: {error}.", fix=_FIX) from error
        heard = self._take(completion)
        return heard + self.end()

    def feed(self, event_data: bytes) -> list[Event]:
        """As `Hearing.feed`."""
        if event_data == _DONE:
            return self.end()
        try:
            return self._take(_decoder.decode(event_data))
        except msgspec.ValidationError:
            return []
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UpstreamError(
                f"The engine sent an event of {len(event_data)} bytes that is not valid JSON: {error}.", fix=_FIX
            ) from error

    def end(self) -> list[Event]:
        """As `Hearing.end`: the usage comes after the last word, so what comes last waits for it."""
        if self.over:
            return []
        self.over = True
        heard: list[Event] = [] if self._began else [Began("", "")]
        heard += self._turns.end()
        reason = _REASONS.get(self._reason or "", "stop")
        if reason == "stop" and self._calls:  # some engines say so whatever they called
            reason = "tools"
        heard.append(Ended(reason, self._stop))
        usage = read_usage(self._usage, self._timings)
        return heard if usage == Usage() else [*heard, Counted(usage)]

    def _take(self, completion: _Completion) -> list[Event]:
        if completion.error != NULL:
            return [Faulted(_message(completion.error))]
        heard: list[Event] = []
        if not self._began and (completion.id or completion.choices):  # some services send a notice first
            self._began = True
            self._id = completion.id or ""
            heard.append(Began(self._id, completion.model or ""))
        if completion.usage is not None:
            self._usage = completion.usage
        if completion.timings is not None:
            self._timings = completion.timings
        for choice in completion.choices or ():
            if choice.index == 0:
                heard += self._choice(choice)
        return heard

    def _choice(self, choice: _Choice) -> list[Event]:
        heard: list[Event] = []
        words = choice.delta or choice.message or _Words()
        if thought := words.reasoning_content or words.reasoning:
            heard += self._turns.thought(thought)
        if said := words.content or words.refusal:
            heard += self._turns.said(said)
        for call in words.tool_calls or ():
            heard += self._call(call, whole=choice.message is not None)
        if choice.finish_reason is not None:
            self._reason = "content_filter" if words.refusal else choice.finish_reason
            self._stop = choice.stop_reason if isinstance(choice.stop_reason, str) else None
        return heard

    def _call(self, call: WireToolCall, *, whole: bool) -> list[Event]:
        heard: list[Event] = []
        number, known = self._number_at.get(call.index, (-1, ""))
        if whole or number < 0 or (call.id and known and call.id != known):  # some engines number every call 0
            number = self._calls
            self._calls += 1
            call_id = call.id or f"call_{self._id}_{number}"
            self._number_at[call.index] = (number, call.id or "")
            heard += self._turns.called(number, call_id, "" if call.function is None else call.function.name or "")
        if call.function is not None and call.function.arguments:
            heard += self._turns.argued(number, call.function.arguments)
        return heard


def _message(error: Raw) -> str:
    try:
        told = msgspec.json.decode(error, type=str | _Problem)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return told if isinstance(told, str) else told.message
