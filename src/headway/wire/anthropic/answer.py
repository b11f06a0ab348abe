"""Whole answers of Anthropic's Messages API, and what they cost."""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.openai import NULL, Answer, ToolCall

FIX: Final = "Check that the upstream URL is an Anthropic-compatible /v1 endpoint."


class _OutputDetails(Struct):
    thinking_tokens: int | None = None


class WireUsage(Struct):
    """``usage`` as the API sends it: ``input_tokens`` are those that came neither from nor went to the cache."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None

    def updated(self, later: "WireUsage") -> "WireUsage":
        """With what a later event of the stream says, which counts from the beginning: it replaces, never adds."""
        return WireUsage(
            *[
                old if new is None else new
                for old, new in zip(msgspec.structs.astuple(self), msgspec.structs.astuple(later), strict=True)
            ]
        )


class Block(Struct):
    """A block of an answer's content, whatever its type."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NULL
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class WireMessage(Struct):
    """An answer, or its beginning in a stream's first event."""

    id: str | None = None
    content: list[Block] | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: WireUsage | None = None


_decoder: Final = msgspec.json.Decoder(WireMessage)


def read_answer(body: bytes) -> Answer:
    """Read a whole answer. JSON of another shape is an answer of which nothing is known.

    Raises:
        UpstreamError: the body is not JSON.
    """
    try:
        message = _decoder.decode(body)
    except msgspec.ValidationError:
        return Answer()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UpstreamError(f"The engine's answer of {len(body)} bytes is not valid JSON: {error}.", fix=FIX) from error
    content = message.content or []
    return Answer(
        content="".join([block.text for block in content if block.type == "text" and block.text]),
        tool_calls=tuple(
            [
                ToolCall(block.id or "", block.name or "", bytes(block.input).decode())
                for block in content
                if block.type == "tool_use"
            ]
        ),
        finish_reason=message.stop_reason,
        usage=read_usage(message.usage),
        model=message.model,
    )


def read_usage(usage: WireUsage | None) -> Usage:
    """Token counts in Headway's sense, where the input includes what the cache gave and took."""
    if usage is None:
        return Usage()
    read, write = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    details = usage.output_tokens_details
    return Usage(
        input_tokens=None if usage.input_tokens is None else usage.input_tokens + (read or 0) + (write or 0),
        output_tokens=usage.output_tokens,
        cache_read=read,
        cache_write=write,
        reasoning=None if details is None else details.thinking_tokens,
    )


def usage_document(usage: Usage) -> dict[str, Any]:
    """``usage`` as the API words it. It must hold two numbers, so a count that is unknown is 0 there."""
    read, write = usage.cache_read, usage.cache_write
    document: dict[str, Any] = {
        "input_tokens": max(0, (usage.input_tokens or 0) - (read or 0) - (write or 0)),
        "output_tokens": usage.output_tokens or 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
    }
    if usage.reasoning is not None:
        document["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return document
