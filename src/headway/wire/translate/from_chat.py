"""A request of OpenAI's chat completions, read into a conversation."""

from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from headway.wire.openai import NULL
from headway.wire.translate.conversation import (
    Call,
    Choice,
    Conversation,
    File,
    Form,
    Image,
    Message,
    Part,
    Result,
    Text,
    Thought,
    Tool,
)
from headway.wire.translate.fields import convert, sort_out, untranslatable
from headway.wire.translate.media import file_of, image_of

_CARRIED: Final = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "stop",
        "response_format",
        "reasoning_effort",
        "verbosity",
        "user",
        "prompt_cache_key",
        "n",
        "modalities",
        "top_logprobs",
    ]
)
_REFUSED: Final = {
    "logprobs": "its engine does not tell how likely tokens were",
    "logit_bias": "its engine's tokens are others",
    "audio": "its engine does not speak",
    "functions": "only `tools` can be translated",
    "function_call": "only `tool_choice` can be translated",
    "web_search_options": "its engine does not search",
    "moderation": "its engine does not moderate",
}


class _TextPart(Struct, tag_field="type", tag="text"):
    text: str


class _RefusalPart(Struct, tag_field="type", tag="refusal"):
    refusal: str


class _ImageUrl(Struct):
    url: str
    detail: str | None = None


class _ImagePart(Struct, tag_field="type", tag="image_url"):
    image_url: _ImageUrl


class _File(Struct):
    file_data: str
    filename: str | None = None


class _FilePart(Struct, tag_field="type", tag="file"):
    file: _File


class _Function(Struct):
    name: str
    arguments: str | dict[str, Raw] = ""


class _Call(Struct):
    id: str
    function: _Function


class _Message(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_TextPart | _RefusalPart | _ImagePart | _FilePart] | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str = ""


class _Definition(Struct):
    name: str
    description: str | None = None
    parameters: Raw = NULL
    strict: bool | None = None


class _Tool(Struct, tag_field="type", tag="function"):
    function: _Definition


class _Named(Struct):
    name: str


class _Choice(Struct, tag_field="type", tag="function"):
    function: _Named


class _Schema(Struct):
    name: str = "answer"
    schema: Raw = NULL
    strict: bool | None = None


class _Format(Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


class _Options(Struct):
    include_usage: bool | None = None


class _Body(Struct):
    model: str
    messages: list[_Message]
    stream: bool | None = None
    stream_options: _Options | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Choice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None
    response_format: _Format | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    n: int | None = None
    modalities: list[str] | None = None
    top_logprobs: int | None = None


def read(body: bytes, notes: list[str]) -> Conversation:
    """Read a request to /v1/chat/completions; what is left out of it is added to ``notes``.

    Raises:
        BadInputError: which field has no counterpart in other dialects, or is not of the API's shape.
    """
    sort_out(body, notes, carried=_CARRIED, refused=_REFUSED)
    asked = convert(body, _Body)
    _check(asked)
    stop = asked.stop
    return Conversation(
        model=asked.model,
        messages=tuple(_messages(asked.messages)),
        stream=asked.stream is True,
        tools=tuple([_tool(tool.function) for tool in asked.tools or ()]),
        choice=_choice(asked.tool_choice),
        parallel=asked.parallel_tool_calls,
        max_tokens=asked.max_tokens if asked.max_completion_tokens is None else asked.max_completion_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        stop=(stop,) if isinstance(stop, str) else tuple(stop or ()),
        form=_form(asked.response_format),
        effort=asked.reasoning_effort,
        verbosity=asked.verbosity,
        user=asked.user,
        cache_key=asked.prompt_cache_key,
        wants_usage=asked.stream_options is not None and asked.stream_options.include_usage is True,
    )


def _check(asked: _Body) -> None:
    """Refuse the values that cannot be had; the usual ones of the same fields can."""
    if asked.n not in {None, 1}:
        raise untranslatable("n", "its engine gives one answer")
    if asked.modalities not in (None, ["text"]):
        raise untranslatable("modalities", "its engine gives text")
    if asked.top_logprobs:
        raise untranslatable("top_logprobs", _REFUSED["logprobs"])


def _messages(given: list[_Message]) -> list[Message]:
    messages: list[Message] = []
    results: list[Part] = []
    for number, message in enumerate(given):
        if message.role == "tool":
            results.append(_result(message, number))
            continue
        if results:
            messages.append(Message("user", tuple(results)))
            results = []
        messages.append(_message(message))
    if results:
        messages.append(Message("user", tuple(results)))
    return messages


def _message(message: _Message) -> Message:
    parts = _parts(message.content)
    if message.role == "assistant":
        thought = (Thought(message.reasoning_content),) if message.reasoning_content else ()
        return Message("assistant", (*thought, *parts, *[_call(call) for call in message.tool_calls or ()]))
    return Message("user" if message.role == "user" else "system", tuple(parts))


def _parts(content: str | list[Any] | None) -> list[Text | Image | File]:
    if content is None or isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(part) for part in content]


def _part(part: _TextPart | _RefusalPart | _ImagePart | _FilePart) -> Text | Image | File:
    match part:
        case _TextPart():
            return Text(part.text)
        case _RefusalPart():
            return Text(part.refusal)
        case _ImagePart():
            return image_of(part.image_url.url, part.image_url.detail)
        case _FilePart():
            return file_of(part.file.file_data, part.file.filename, "file.file_data")


def _call(call: _Call) -> Call:
    arguments = call.function.arguments
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Call(call.id, call.function.name, text)


def _result(message: _Message, number: int) -> Result:
    if not message.tool_call_id:
        raise untranslatable(f"messages[{number}].tool_call_id", "it is missing")
    return Result(message.tool_call_id, tuple(_parts(message.content)))


def _tool(tool: _Definition) -> Tool:
    return Tool(tool.name, tool.description, tool.parameters, tool.strict)


def _choice(choice: str | _Choice | None) -> Choice | None:
    match choice:
        case None:
            return None
        case _Choice():
            return Choice("one", choice.function.name)
        case "required":
            return Choice("any")
        case "none":
            return Choice("none")
        case _:
            return Choice("auto")


def _form(given: _Format | None) -> Form | None:
    if given is None or given.type == "text":
        return None
    schema = given.json_schema or _Schema()
    return Form("response_format", schema.schema, schema.name, schema.strict)
