"""What was asked and answered, out of an input and an output as products record them beside a span."""

from typing import Final, cast

import msgspec

from headway.trace.sources.fields.langchain import plain_messages
from headway.trace.sources.fields.messages import decoded, messages
from headway.trace.sources.otel.attributes import Facts
from headway.trace.sources.otel.exchange import Exchange, exchange
from headway.trace.sources.session.draft import first_words
from headway.wire.otel import RawSpan

Fields = dict[str, object]

_QUOTED: Final = 2
"""How often a text may have been written as JSON: Langfuse's own traces do it twice."""


def request(value: object) -> object:
    """A recorded input in a shape that holds messages, if it holds any."""
    value = plain_messages(value)
    if isinstance(value, dict):
        held = cast("Fields", value)
        return held.get("new_message") or held.get("args") or held.get("prompts") or held  # Google ADK's, LlamaIndex's
    return value


def response(value: object) -> object:
    """A recorded output in a shape that holds messages."""
    value = plain_messages(value)
    if isinstance(value, list):
        calls = cast("list[object]", value)
        if all(isinstance(one, dict) and "toolName" in one for one in calls):
            return {"role": "assistant", "tool_calls": calls}  # Vercel's
    return cast("object", value)


def conversed(raw: RawSpan, said: Facts, asked: object, answered: object) -> Exchange:
    """The messages of a call: those that its attributes keep, else those of the input and output beside it."""
    found = exchange(raw, {"request": request(asked), "response": response(answered), **said})
    return found if found.prompt else Exchange(None, found.answer)


def title_of(value: object) -> str | None:
    """The first words of the last thing that a user said in a recorded input."""
    for _ in range(_QUOTED):
        if isinstance(value, str) and value[:1] == '"':
            try:
                value = cast("object", msgspec.json.decode(value))
            except msgspec.DecodeError:
                return None
    value = decoded(value)
    said = _said(value)
    if not said and isinstance(value, dict):  # a function's only argument, whatever it is called
        held = list(cast("Fields", value).values())
        said = _said(held[0]) if len(held) == 1 else []
    return first_words(said[-1]) if said else None


def _said(value: object) -> list[str]:
    return [message.text for message in messages(request(value), "user") if message.role == "user" and message.text]
