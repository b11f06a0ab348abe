"""Where a span keeps what its call was asked and answered: attributes, numbered attributes, events, whole requests."""

from collections.abc import Callable
from typing import Final, cast

from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ToolCallRef
from headway.trace.sources.fields.messages import Message, Parts, decoded, indexed, messages
from headway.trace.sources.fields.scalars import text
from headway.trace.sources.otel.attributes import DETAILS_EVENT, EVENTS, INDEXED, Fact, Facts, facts
from headway.wire.otel import RawSpan

_PREFIXES: Final = tuple(INDEXED)
_SPEAKS: Final[frozenset[Fact]] = frozenset(
    {"prompt", "answer", "answer_calls", "numbered", "events", "request", "response", "inputs", "outputs"}
)


class Answer(Struct, frozen=True, gc=False):
    """What a call answered."""

    part: Part | None = None
    calls: tuple[ToolCallRef, ...] = ()
    finish: str | None = None


_NO_ANSWER: Final = Answer()


class Exchange(Struct, frozen=True, gc=False):
    """What a call was asked, in order, and what it answered; ``None`` where the span does not say."""

    prompt: list[Message] | None
    answer: list[Message] | None


SILENT: Final = Exchange(None, None)
"""Of a span that says nothing of messages."""

_Sides = tuple[list[Message] | None, list[Message] | None]


def exchange(raw: RawSpan, said: Facts) -> Exchange:
    """The messages of a call in plain words; each side from the first place that has it."""
    if not raw.events and _SPEAKS.isdisjoint(said):
        return SILENT
    for event in raw.events:
        if event.name == DETAILS_EVENT:
            said = {**facts(event.attributes), **said}
    prompt: list[Message] | None = None
    answer: list[Message] | None = None
    try:
        for place in _PLACES:
            asked_there, answered_there = place(raw, said)
            prompt, answer = prompt or asked_there, answer or answered_there
            if prompt and answer:
                break
        if prompt and "system" in said:
            prompt = [*messages(said["system"], "system"), *prompt]
    except RecursionError:  # nested beyond reason: as good as not kept
        return SILENT
    return Exchange(prompt, answer) if prompt or answer else SILENT


def asked(exchanged: Exchange) -> str | None:
    """The text of the last message of the user."""
    prompt = exchanged.prompt or ()
    return next((message.text for message in reversed(prompt) if message.role == "user" and message.text), None)


def digested(exchanged: Exchange, parts: Parts) -> tuple[tuple[Part, ...] | None, Answer]:
    """The same without its text."""
    prompt = None if exchanged.prompt is None else tuple([parts.of(message) for message in exchanged.prompt])
    if not exchanged.answer:
        return prompt, _NO_ANSWER
    # A stream may be kept as many messages of a few letters each.
    whole = Message("assistant", "".join(message.text for message in exchanged.answer))
    return prompt, Answer(
        part=parts.of(whole),
        calls=tuple(call for message in exchanged.answer for call in message.calls),
        finish=next((message.finish for message in exchanged.answer if message.finish), None),
    )


def asked_model(said: Facts) -> str | None:
    """The model that a whole request names."""
    held = decoded(said.get("request", said.get("inputs")))
    return text(cast("dict[str, object]", held).get("model")) if isinstance(held, dict) else None


def _told(_raw: RawSpan, said: Facts) -> _Sides:
    """Attributes that hold a side whole."""
    prompt = messages(said["prompt"], "user") if "prompt" in said else None
    answer = messages(said["answer"], "assistant") if "answer" in said else None
    if "answer_calls" in said:
        apart = messages({"role": "assistant", "tool_calls": decoded(said["answer_calls"])}, "assistant")
        answer = [*(answer or ()), *apart]
    return prompt, answer


def _numbered(raw: RawSpan, said: Facts) -> _Sides:
    """Attributes that hold a piece of a message each."""
    found: dict[str, list[tuple[str, object]]] = {}
    for name, value in raw.attributes.items() if "numbered" in said else ():
        if name.startswith(_PREFIXES):
            for prefix, side in INDEXED.items():
                if name.startswith(prefix):
                    found.setdefault(side, []).append((name[len(prefix) :], value))
    if not found:
        return None, None
    return indexed(found.get("prompt", ()), "user"), indexed(found.get("answer", ()), "assistant")


def _happened(raw: RawSpan, said: Facts) -> _Sides:
    """Events that are a message each."""
    events = [(event.name, event.attributes) for event in raw.events]
    if "events" in said and isinstance(held := decoded(said["events"]), list):
        for value in cast("list[object]", held):
            if isinstance(value, dict):
                event = cast("dict[str, object]", value)
                events.append((str(event.get("event.name")), event))
    found: dict[str, list[Message]] = {}
    for name, attributes in events:
        place = EVENTS.get(name)
        if place is not None:
            side, role = place
            found.setdefault(side, []).extend(messages({"role": role, **attributes}, role))
    return found.get("prompt"), found.get("answer")


def _whole(_raw: RawSpan, said: Facts) -> _Sides:
    """A whole request, a whole response."""
    asked_with, answered_with = said.get("request", said.get("inputs")), said.get("response", said.get("outputs"))
    prompt = None if asked_with is None else messages(asked_with, "user")
    answer = None if answered_with is None else messages(answered_with, "assistant")
    return prompt, answer


_PLACES: Final[tuple[Callable[[RawSpan, Facts], _Sides], ...]] = (_told, _numbered, _happened, _whole)
"""Where messages may be, what is meant for them first."""
