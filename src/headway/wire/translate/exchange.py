"""One call between a caller and an engine that speak different dialects."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from headway.core.errors import UpstreamError
from headway.wire.anthropic.documents import count_document
from headway.wire.crowded import MOST, crowded
from headway.wire.dialect import Dialect
from headway.wire.openai import Answer, ToolCall
from headway.wire.translate import from_anthropic, from_chat, from_responses, to_anthropic, to_chat
from headway.wire.translate.conversation import Conversation
from headway.wire.translate.fields import untranslatable
from headway.wire.translate.hear_anthropic import AnthropicHearing
from headway.wire.translate.hear_chat import ChatHearing
from headway.wire.translate.ids import original_id, plain_id
from headway.wire.translate.said import Event, Faulted, Hearing, Reply, Telling
from headway.wire.translate.tell_anthropic import AnthropicTelling
from headway.wire.translate.tell_chat import ChatTelling
from headway.wire.translate.tell_responses import ResponsesTelling, free_text

_CHAT: Final = "openai-chat"
_MESSAGES: Final = "anthropic-messages"
_RESPONSES: Final = "openai-responses"
_COUNT: Final = "anthropic-count-tokens"

_READERS: Final[dict[str, Callable[[bytes, list[str]], Conversation]]] = {
    _CHAT: from_chat.read,
    _MESSAGES: from_anthropic.read,
    _RESPONSES: from_responses.read,
    _COUNT: from_anthropic.read,
}
_WRITERS: Final[dict[str, Callable[[Conversation, list[str]], bytes]]] = {
    _CHAT: to_chat.write,
    _MESSAGES: to_anthropic.write,
}
_HEARINGS: Final[dict[str, Callable[[], Hearing]]] = {_CHAT: ChatHearing, _MESSAGES: AnthropicHearing}
_TELLINGS: Final[dict[str, Callable[[Conversation, int], Telling]]] = {
    _CHAT: ChatTelling,
    _MESSAGES: lambda asked, _: AnthropicTelling(asked),
    _RESPONSES: ResponsesTelling,
    _COUNT: lambda asked, _: CountTelling(asked),
}
_UNAVAILABLE: Final = 503
_OVERLOADED: Final = 529
"""Anthropic's own status; the clients of others know 503 for the same."""
_SHOWN: Final = 2000
"""Characters of an engine's error that are passed on."""


class Refused(Struct, frozen=True):
    """An engine's refusal, as it is told on."""

    status: int
    message: str
    error: str = "upstream_refused"


class CountTelling:
    """Tells a count of tokens: the engine is asked for one token after the prompt, and its usage says how long that is.

    As `Telling`, but there are no streams.
    """

    def __init__(self, asked: Conversation) -> None:
        del asked

    def whole(self, reply: Reply) -> bytes:
        """As `Telling.whole`."""
        counted = reply.usage.input_tokens
        if counted is None:
            raise UpstreamError(
                "The engine does not tell how many tokens a prompt has, so they cannot be counted.",
                fix="Ask a model whose engine reports usage.",
            )
        return count_document(counted)

    def tell(self, event: Event) -> bytes:
        """Nothing."""
        del event
        return b""

    def end(self) -> bytes:
        """Nothing."""
        return b""


class Interpreter:
    """Interprets one streamed answer, event by event."""

    def __init__(self, hearing: Hearing, telling: Telling, caller: Dialect) -> None:
        self._hearing = hearing
        self._telling = telling
        self._caller = caller
        self._over = False

    def feed(self, event_data: bytes) -> bytes:
        """What the caller is sent for one event of the engine's, which may be nothing.

        Raises:
            UpstreamError: the data is not JSON.
        """
        told = self._tell(self._hearing.feed(event_data))
        return told + self._finish() if self._hearing.over else told

    def end(self) -> bytes:
        """The end of the caller's stream; to be called once the engine's has ended in good order."""
        if self._over:
            return b""
        told = self._tell(self._hearing.end())
        return told + self._finish()

    def _finish(self) -> bytes:
        if self._over:
            return b""
        self._over = True
        return self._telling.end()

    def _tell(self, events: Iterable[Event]) -> bytes:
        told: list[bytes] = []
        for event in events:
            if self._over:
                break
            if isinstance(event, Faulted):
                self._over = True
                told.append(self._caller.error_event(Refused(502, event.message[:_SHOWN], "upstream_error_event")))
            else:
                told.append(self._telling.tell(event))
        return b"".join(told)


class Exchange:
    """A request in the engine's dialect, and how its answer is told to the caller.

    Args:
        caller: the dialect of the request.
        engine: that of who serves it.
        body: the request's.
        created: when it was asked; whole seconds since the epoch.

    Raises:
        BadInputError: which field cannot be translated, and why.
    """

    def __init__(self, caller: Dialect, engine: Dialect, body: bytes, *, created: int) -> None:
        self._caller = caller
        self._engine = engine.name
        self._created = created
        notes: list[str] = []
        if crowded(body):
            raise untranslatable("messages", f"the request has more than {MOST:,} objects, which would take seconds")
        asked = _READERS[caller.name](body, notes)
        if caller.name == _COUNT:
            asked = msgspec.structs.replace(asked, max_tokens=1, stream=False)
        self._asked = asked
        self.body = _WRITERS[engine.name](asked, notes)
        """What the engine is sent."""
        self.notes = tuple(dict.fromkeys(notes))
        """What was left out of it or put differently: a sentence each, for receipts."""

    def answer(self, body: bytes) -> bytes:
        """A whole good answer of the engine's, as the caller gets it.

        Raises:
            UpstreamError: it is not an answer.
        """
        reply = Reply()
        for event in _HEARINGS[self._engine]().whole(body):
            if isinstance(event, Faulted):
                raise UpstreamError(f"The engine answered with an error: {event.message[:_SHOWN]}")
            reply.hear(event)
        return self._telling().whole(reply.finish())

    def as_told(self, answer: Answer) -> Answer:
        """What was heard of the engine, with tool calls as the caller knows them and will repeat them."""
        return msgspec.structs.replace(answer, tool_calls=tuple([self._call(call) for call in answer.tool_calls]))

    def _call(self, call: ToolCall) -> ToolCall:
        if self._caller.name == _MESSAGES:
            return ToolCall(plain_id(call.id), call.name, call.arguments)
        if self._engine == _MESSAGES:
            call = ToolCall(original_id(call.id), call.name, call.arguments)
        arguments = free_text(call.arguments) if call.name in self._asked.free_tools else call.arguments
        _, name = self._asked.grouped.get(call.name, (None, call.name))
        return ToolCall(call.id, name, arguments)

    def refusal(self, status: int, body: bytes) -> tuple[int, bytes]:
        """An answer of the engine's with another status than 200, as the caller gets it."""
        known = _UNAVAILABLE if status == _OVERLOADED and self._caller.name != _MESSAGES else status
        return known, self._caller.error(Refused(known, _told(body, status)))

    def interpreter(self) -> Interpreter:
        """For a streamed answer."""
        return Interpreter(_HEARINGS[self._engine](), self._telling(), self._caller)

    def _telling(self) -> Telling:
        return _TELLINGS[self._caller.name](self._asked, self._created)


def asked_in(caller: Dialect, spoken: Iterable[Dialect]) -> Dialect | None:
    """The dialect in which an engine that speaks these is asked on behalf of a caller.

    Its own where the engine knows it, else the first that it can be translated into; ``None``: it cannot be served.
    """
    known = tuple(spoken)
    if any(dialect.name == caller.name for dialect in known):
        return caller
    return next((dialect for dialect in known if translates(caller, dialect)), None)


def translates(caller: Dialect, engine: Dialect) -> bool:
    """Whether an `Exchange` can be had between the two; of one dialect with itself nothing need be translated."""
    return caller.name != engine.name and caller.name in _READERS and engine.name in _WRITERS


class _Detail(Struct):
    message: str | None = None


class _Problem(Struct):
    error: str | _Detail | None = None
    message: str | None = None
    detail: Raw = msgspec.field(default_factory=Raw)


def _told(body: bytes, status: int) -> str:
    """The message of an error, in whichever shape engines have it."""
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        problem = _Problem()
    error = problem.error
    told = error.message if isinstance(error, _Detail) else error
    found = told or problem.message or bytes(problem.detail).decode().strip('"')
    return found[:_SHOWN] or f"The engine answered with status {status} and no message."
