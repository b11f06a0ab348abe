"""The OpenAI chat-completions wire: requests, whole answers and errors. Bytes in, values out.

Only what Headway acts on is decoded; everything else stays in the bytes, which are passed on as they came.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from headway.core.errors import BadInputError, UpstreamError
from headway.core.usage import EngineTimings, Usage
from headway.wire.bad_request import check_tools, no_json
from headway.wire.usage_option import asking_for_usage

NULL: Final = Raw(b"null")
"""Stands for an absent field that is kept as JSON text."""
_COUNT: Final = msgspec.json.Decoder(int | None)
_SHOWN: Final = 100
"""Characters of a bad value that are sent back."""


class ChatRequest(Struct, frozen=True, kw_only=True, gc=False):
    """What Headway reads of a request; ``messages``, ``tools``, ``metadata`` and ``stream_options`` stay JSON text."""

    model: str
    messages: Raw
    stream: bool | None = None
    stream_options: Raw | UnsetType = UNSET
    tools: Raw = NULL
    prompt_cache_key: str | None = None
    metadata: Raw = NULL
    max_tokens: Raw = NULL
    max_completion_tokens: Raw = NULL
    n: Raw = NULL

    @property
    def output_limit(self) -> int | None:
        """Most tokens that one answer may have; ``None``: no limit is set, or none that is a number."""
        limit = self.max_tokens if self.max_completion_tokens == NULL else self.max_completion_tokens
        try:
            return _COUNT.decode(limit)
        except msgspec.DecodeError:
            return None

    @property
    def choices(self) -> int:
        """How many answers it asks for; 1 where that is no number: whoever is asked will refuse it."""
        if self.n == NULL:
            return 1
        try:
            return _COUNT.decode(self.n) or 1
        except msgspec.DecodeError:
            return 1

    def asking_for_usage(self, body: bytes) -> tuple[bytes, bytes | memoryview] | None:
        """As `usage_option.asking_for_usage`, for the ``body`` that this was read from."""
        return asking_for_usage(body, self.stream_options)

    @property
    def session(self) -> str | None:
        """The session that the body names: ``prompt_cache_key``, else ``metadata.session_id``."""
        if self.prompt_cache_key or self.metadata == NULL:
            return self.prompt_cache_key or None
        try:
            return msgspec.json.decode(self.metadata, type=_Metadata).session_id or None
        except (msgspec.DecodeError, RecursionError):
            return None


class ToolCall(Struct, frozen=True, gc=False):
    """A tool call as the answer spelled it."""

    id: str
    name: str
    arguments: str


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """What Headway reads of an answer: its first choice and what it cost."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    engine: EngineTimings | None = None
    model: str | None = None


class _Message(Struct, gc=False):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class _Metadata(Struct, gc=False):
    session_id: str | None = None


class _PromptDetails(Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _CompletionDetails(Struct, gc=False):
    reasoning_tokens: int | None = None


class WireUsage(Struct, gc=False):
    """``usage`` as engines and providers send it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class WireTimings(Struct, gc=False):
    """``timings`` as llama.cpp sends it."""

    prompt_n: int
    prompt_ms: float
    predicted_n: int
    predicted_ms: float
    cache_n: int | None = None


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class WireToolCall(Struct, gc=False):
    """A tool call of a message, or the piece of one that a stream's delta carries."""

    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Reply(Struct, gc=False):
    content: str | None = None
    tool_calls: list[WireToolCall] | None = None


class _Choice(Struct, gc=False):
    message: _Reply | None = None
    finish_reason: str | None = None


class _Completion(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: WireUsage | None = None
    timings: WireTimings | None = None
    model: str | None = None


_request_decoder: Final = msgspec.json.Decoder(ChatRequest)
_messages_decoder: Final = msgspec.json.Decoder(list[_Message])
_completion_decoder: Final = msgspec.json.Decoder(_Completion)
_encoder: Final = msgspec.json.Encoder()


def decode_request(body: bytes) -> ChatRequest:
    """Read a chat-completions request.

    Raises:
        BadInputError: the body is not JSON, a field that Headway needs is missing or of the wrong type, there is no
            message, or one has no role that the protocol knows: engines answer these late, and with a 500.
    """
    try:
        request = _request_decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadInputError(
            f"The request body has a field of the wrong type: {error}.",
            fix="Send a chat-completions object with `model` (string) and `messages` (array).",
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise no_json(body, error) from error
    if bytes(request.messages)[:1] != b"[":
        raise BadInputError(
            "The request body has a field of the wrong type: Expected `array` - at `$.messages`.",
            fix="Send `messages` as an array of objects with `role` and `content`.",
        )
    _check(request.messages)
    if request.tools is not NULL:
        check_tools(request.tools)
    return request


def _check(messages: Raw) -> None:
    """One pass that builds nothing but a role for each message: about as quick as finding the array's end was."""
    try:
        if not _messages_decoder.decode(messages):
            raise BadInputError("The request's `messages` is empty.", fix="Send at least one message.")
    except msgspec.ValidationError as error:
        raise _bad_message(messages) from error


def _bad_message(messages: Raw) -> BadInputError:
    """What is wrong with the first message that cannot be used."""
    each = msgspec.json.decode(messages, type=list[Raw])
    number, problem = next((number, problem) for number, one in enumerate(each) if (problem := _problem(one)))
    place = f"messages[{number}].role" if bytes(each[number])[:1] == b"{" else f"messages[{number}]"
    return BadInputError(
        f"The request's `{place}` cannot be used: {problem}.",
        fix="Give every message one of the roles system, developer, user, assistant, tool and function.",
    )


def _problem(message: Raw) -> str:
    try:
        msgspec.json.decode(message, type=_Message)
    except msgspec.ValidationError as error:
        return str(error).removesuffix(" - at `$.role`")[:_SHOWN]
    return ""


def decode_answer(body: bytes) -> Answer:
    """Read a whole (non-streamed) chat completion. JSON of another shape is an answer of which nothing is known.

    Raises:
        UpstreamError: the body is not JSON.
    """
    try:
        completion = _completion_decoder.decode(body)
    except msgspec.ValidationError:
        return Answer()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UpstreamError(
            f"The engine's answer of {len(body)} bytes is not valid JSON: {error}.",
            fix="Check that the upstream URL is an OpenAI-compatible /v1 endpoint.",
        ) from error
    choice = completion.choices[0] if completion.choices else _Choice()
    message = choice.message or _Reply()
    return Answer(
        content=message.content or "",
        tool_calls=tuple(_tool_call(call) for call in message.tool_calls or ()),
        finish_reason=choice.finish_reason,
        usage=read_usage(completion.usage, completion.timings),
        engine=read_timings(completion.timings),
        model=completion.model,
    )


def _tool_call(call: WireToolCall) -> ToolCall:
    function = call.function or _Function()
    return ToolCall(call.id or "", function.name or "", function.arguments or "")


def read_usage(usage: WireUsage | None, timings: WireTimings | None) -> Usage:
    """Token counts; where the engine sent none, those that llama.cpp's timings imply. Never guessed."""
    if usage is not None:
        prompt = usage.prompt_tokens_details or _PromptDetails()
        completion = usage.completion_tokens_details or _CompletionDetails()
        return Usage(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cache_read=prompt.cached_tokens,
            cache_write=prompt.cache_write_tokens,
            reasoning=completion.reasoning_tokens,
        )
    if timings is None:
        return Usage()
    cached = timings.cache_n
    return Usage(
        input_tokens=None if cached is None else cached + timings.prompt_n,
        output_tokens=timings.predicted_n,
        cache_read=cached,
    )


def read_timings(timings: WireTimings | None) -> EngineTimings | None:
    """llama.cpp's timings in seconds."""
    if timings is None:
        return None
    return EngineTimings(
        prefill_tokens=timings.prompt_n,
        prefill_seconds=timings.prompt_ms / 1000,
        decode_tokens=timings.predicted_n,
        decode_seconds=timings.predicted_ms / 1000,
        cached_tokens=timings.cache_n,
    )


def error_body(
    message: str,
    *,
    type: str,  # noqa: A002 - the wire's own name
    code: str | None = None,
    param: str | None = None,
) -> bytes:
    """An error as OpenAI's API shapes it, so that every client library raises it as its own."""
    error: dict[str, Any] = {"message": message, "type": type, "param": param, "code": code}
    return _encoder.encode({"error": error})
