"""What identity needs of a chat history: who spoke, what they said, which tool calls were answered.

Digests are Python's own hashes: 64 bits, remembered by the string that was hashed, and keyed by a seed that is another
in each process unless it was started with one. They are made of strings and numbers alone, whose hashes depend on
nothing else, so that processes with one seed can compare them.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct


class FunctionCall(Struct, frozen=True, gc=False):
    """The function part of a tool call; arguments are JSON text, or an object where a client sends one."""

    name: str = ""
    arguments: str | dict[str, Any] = ""


class ToolCall(Struct, gc=False):
    """A tool call as an assistant message carries it; one of another type than "function" has an empty function."""

    id: str = ""
    function: FunctionCall = FunctionCall()


class Part(Struct, gc=False):
    """One block of a message's content; the last fields are those of Anthropic's tool blocks."""

    type: str = ""
    text: str | None = None
    image_url: Any = None
    source: Any = None
    id: str = ""
    name: str = ""
    input: dict[str, Any] | None = None
    tool_use_id: str = ""
    content: Any = None
    is_error: bool | None = None


class Message(Struct, gc=False):
    """One message of a history. Fields that do not identify it (``name``, ``cache_control`` …) are not read."""

    role: str = ""
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class IssuedCall(Struct, frozen=True, gc=False):
    """A tool call of an answer, whichever wire it came by."""

    id: str
    name: str
    arguments: str


class ToolResult(Struct, frozen=True, gc=False):
    """A tool's result that a request brings."""

    call_id: str
    failed: bool | None = None


class Utterance(Struct, frozen=True, gc=False):
    """Digests of what a model said: its visible text, and its tool calls; ``None`` where there is none."""

    text: int | None
    calls: int | None


_DECODER = msgspec.json.Decoder(list[Message])
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def decode(messages: bytes) -> list[Message] | None:
    """The messages of a raw JSON array; ``None`` when they are not chat messages (the engine will say so)."""
    try:
        return _DECODER.decode(messages)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text(message: Message) -> str:
    """All text of a message, parts joined by newlines."""
    content = message.content
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if part.text)


def results(messages: Iterable[Message]) -> list[ToolResult]:
    """The tool results among ``messages``: OpenAI's tool messages and Anthropic's tool_result blocks."""
    found: list[ToolResult] = []
    for message in messages:
        if message.tool_call_id is not None and message.role == "tool":
            found.append(ToolResult(message.tool_call_id))
        elif isinstance(message.content, list):
            found.extend(ToolResult(p.tool_use_id, p.is_error or False) for p in message.content if p.tool_use_id)
    return found


def calls(message: Message) -> list[IssuedCall]:
    """The tool calls that an assistant message carries: OpenAI's, else Anthropic's tool_use blocks."""
    if message.tool_calls:
        return [
            IssuedCall(call.id, call.function.name, _json_text(call.function.arguments)) for call in message.tool_calls
        ]
    if isinstance(message.content, list):
        return [IssuedCall(p.id, p.name, _json_text(p.input or {})) for p in message.content if p.type == "tool_use"]
    return []


def visible(content: str) -> str:
    """An answer trimmed, and without the reasoning block that some engines leave in its text and clients strip."""
    content = content.strip()
    return _THOUGHT.sub("", content, count=1).strip() if content.startswith("<think>") else content


def utterance(said: str, issued: Sequence[IssuedCall]) -> Utterance:
    """Digest what a model said visibly so that a client's faithful copy of it gives the same digest."""
    return Utterance(
        hash(said) if said else None,
        hash(tuple([(call.id, call.name, call.arguments) for call in issued])) if issued else None,
    )


def spoken(message: Message) -> Utterance:
    """What an assistant message says, as `utterance` digests the answer that it copies."""
    return utterance(visible(text(message)), calls(message))


def canonical(issued: Sequence[IssuedCall]) -> int:
    """Digest of tool calls without what decoding and encoding their arguments again may change.

    That is white space, escapes and the order of fields; the last only as far as cutting at commas can tell.
    """
    return hash(tuple([(call.id, call.name, _canonical(call.arguments)) for call in issued]))


def substance(message: Message) -> str:
    """All that a message holds, as one string: the text of a text, and what stands for its other parts."""
    content = message.content
    if isinstance(content, str):
        return content
    return "" if content is None else "\x00".join([_part(part) for part in content])


def size(message: Message) -> int:
    """Characters of what an assistant's message says and calls."""
    said = len(text(message))
    if message.tool_calls:
        return said + sum([len(call.function.name) + len(call.function.arguments) for call in message.tool_calls])
    return said + sum([len(call.name) + len(call.arguments) for call in calls(message)])


def _part(part: Part) -> str:
    if part.text is not None:
        return part.text
    return msgspec.json.encode(
        (part.type, part.tool_use_id, part.image_url, part.source, part.content), order="sorted"
    ).decode()


def _json_text(value: str | dict[str, Any]) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _canonical(arguments: str) -> str:
    if not arguments.isascii() or "\\u" in arguments:
        with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            arguments = msgspec.json.encode(msgspec.json.decode(arguments)).decode()
    return ",".join(sorted("".join(arguments.split()).strip("{}").split(",")))
