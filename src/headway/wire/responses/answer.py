"""Whole answers of OpenAI's Responses API, and what they cost."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from headway.core.errors import UpstreamError
from headway.core.usage import Usage
from headway.wire.openai import Answer, ToolCall

FIX: Final = "Check that the upstream URL is a /v1 endpoint that serves the Responses API."


class _InputDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class WireUsage(Struct):
    """``usage`` as the API sends it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class Content(Struct):
    """A part of a message."""

    type: str = ""
    text: str | None = None


class OutputItem(Struct):
    """An item of an answer, whatever its type."""

    type: str = ""
    content: list[Content] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None


class _Incomplete(Struct):
    reason: str | None = None


class WireResponse(Struct):
    """An answer, or as much of it as an event of a stream holds."""

    id: str | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    output: list[OutputItem] | None = None
    usage: WireUsage | None = None
    model: str | None = None


_decoder: Final = msgspec.json.Decoder(WireResponse)


def read_answer(body: bytes) -> Answer:
    """Read a whole answer. JSON of another shape is an answer of which nothing is known.

    Raises:
        UpstreamError: the body is not JSON.
    """
    try:
        return answered(_decoder.decode(body))
    except msgspec.ValidationError:
        return Answer()
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UpstreamError(f"The engine's answer of {len(body)} bytes is not valid JSON: {error}.", fix=FIX) from error


def answered(response: WireResponse) -> Answer:
    """What an answer says and what it cost."""
    items = response.output or []
    return Answer(
        content="".join(
            [
                part.text
                for item in items
                if item.type == "message"
                for part in item.content or ()
                if part.type == "output_text" and part.text
            ]
        ),
        tool_calls=tuple([call for item in items if (call := tool_call(item)) is not None]),
        finish_reason=finish_reason(response),
        usage=read_usage(response.usage),
        model=response.model,
    )


def tool_call(item: OutputItem) -> ToolCall | None:
    """The tool call that an item is, if it is one that the caller has to answer."""
    if item.type == "function_call":
        return ToolCall(item.call_id or "", item.name or "", item.arguments or "")
    if item.type == "custom_tool_call":
        return ToolCall(item.call_id or "", item.name or "", item.input or "")
    return None


def finish_reason(response: WireResponse) -> str | None:
    """Why it ended, in the API's words: the status, or what made it incomplete."""
    if response.incomplete_details is not None and response.incomplete_details.reason:
        return response.incomplete_details.reason
    return None if response.status in {"in_progress", "queued"} else response.status


def read_usage(usage: WireUsage | None) -> Usage:
    """Token counts; the input includes the cached ones, here as in Headway."""
    if usage is None:
        return Usage()
    given, written = usage.input_tokens_details or _InputDetails(), usage.output_tokens_details or _OutputDetails()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read=given.cached_tokens,
        cache_write=given.cache_write_tokens,
        reasoning=written.reasoning_tokens,
    )


def usage_document(usage: Usage) -> dict[str, Any] | None:
    """``usage`` as the API words it, which must hold all numbers: one that is unknown is 0 there, but not all."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    given, written = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": given + written,
    }
