"""A model's response as agents keep it: of either of OpenAI's APIs, which LiteLLM makes of any other too."""

from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Struct

from headway.core.money import MicroUsd
from headway.core.prompt import Part
from headway.core.span import ToolCallRef
from headway.core.usage import Usage
from headway.trace.sources.fields.messages import Message, Parts, messages
from headway.wire.salvage import salvage

Count = Annotated[int, Meta(ge=0, le=2**53)]
_MOST: Final = 1e9
"""US dollars that no call costs."""


class Details(Struct):
    """What part of a count is what."""

    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    cache_creation_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class Counts(Struct):
    """Token counts under the names of both of OpenAI's APIs, of Anthropic's and of DeepSeek's."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    input_tokens_details: Details | None = None
    output_tokens_details: Details | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    prompt_cache_hit_tokens: Count | None = None

    def usage(self) -> Usage:
        """The same in canonical words."""
        into = self.prompt_tokens_details or self.input_tokens_details or Details()
        out = self.completion_tokens_details or self.output_tokens_details or Details()
        return inclusive(
            _first(self.prompt_tokens, self.input_tokens),
            _first(self.completion_tokens, self.output_tokens),
            _first(self.cache_read_input_tokens, into.cached_tokens, self.prompt_cache_hit_tokens),
            _first(self.cache_creation_input_tokens, into.cache_write_tokens, into.cache_creation_tokens),
            out.reasoning_tokens,
        )


_COUNTS: Final = msgspec.json.Decoder(Counts)


class Response(Struct):
    """A whole response."""

    id: str | None = None
    created: float | None = None
    """Epoch seconds, by the server's clock, often whole ones."""
    created_at: float | None = None
    model: str | None = None
    usage: Counts | None = None
    choices: object = None
    output: object = None

    def said(self) -> list[Message]:
        """The messages in it: in a chat completion one for each choice."""
        return messages({"choices": self.choices} if self.choices is not None else {"output": self.output}, "assistant")

    def arguments(self) -> dict[str, object]:
        """What its tools are called with, by the id of the tool call."""
        held: list[object] = [self.output]
        held += [_inside(_inside(choice, "message"), "tool_calls") for choice in _listed(self.choices)]
        found: dict[str, object] = {}
        for call in [one for calls in held for one in _listed(calls)]:
            known = _inside(call, "call_id") or _inside(call, "id")
            if isinstance(known, str):
                found[known] = _inside(_inside(call, "function") or call, "arguments")
        return found


def inclusive(
    given: int | None, written: int | None, read: int | None, cached: int | None, reasoning: int | None = None
) -> Usage:
    """Usage whose input holds what the cache gave and took.

    Counts of cached tokens that do not fit into the input were left out of it, and are added. Nothing read and nothing
    written is what is said where nobody counted, so it is unknown.

    Args:
        given: input tokens, with or without the cached ones.
        written: output tokens.
        read: input tokens that the cache gave.
        cached: input tokens that the cache took.
        reasoning: output tokens that were thought.
    """
    if not given and not written:
        return Usage(cache_read=read or None, cache_write=cached or None)
    held = (read or 0) + (cached or 0)
    total = None if given is None else given if given >= held else given + held
    return Usage(input_tokens=total, output_tokens=written, cache_read=read, cache_write=cached, reasoning=reasoning)


def micro_usd(dollars: float | None) -> MicroUsd | None:
    """US dollars as micro-USD, half a one rounded up; unknown where they make no sense as a price."""
    if dollars is None or not 0 <= dollars < _MOST:
        return None
    return MicroUsd(int(dollars * 1_000_000 + 0.5))


def answer(said: list[Message], parts: Parts) -> Part | None:
    """All that a response says as one message of the assistant."""
    text = "\n".join(message.text for message in said if message.text)
    return parts.of(Message("assistant", text)) if text else None


def tool_calls(said: list[Message]) -> tuple[ToolCallRef, ...]:
    """The tool calls of a response, in order."""
    return tuple(call for message in said for call in message.calls)


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def as_counts(value: object) -> Counts | None:
    """Counts out of what JSON decodes to, without those that are none; ``None`` where it is no object at all."""
    if not isinstance(value, dict):
        return None
    return salvage(_COUNTS, msgspec.json.encode(value))[0]


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _inside(value: object, key: str) -> object:
    return cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
