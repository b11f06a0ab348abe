"""A request of OpenAI's Responses API, read into a conversation."""

from collections.abc import Sequence
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
from headway.wire.translate.namespaces import Grouped, about, long_name, name_of

_CARRIED: Final = frozenset(
    {
        "model",
        "input",
        "instructions",
        "max_output_tokens",
        "stream",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "text",
        "reasoning",
        "user",
        "prompt_cache_key",
        "metadata",
        "top_logprobs",
        "background",
    }
)
_NO_MEMORY: Final = "its engine keeps no answers; send the whole conversation as `input`"
_REFUSED: Final = {
    "previous_response_id": _NO_MEMORY,
    "conversation": _NO_MEMORY,
    "prompt": "its engine keeps no prompts; send the text itself",
    "moderation": "its engine does not moderate",
    "context_management": "its engine does not shorten conversations",
}
_ECHOED: Final = frozenset(
    {
        "instructions",
        "max_output_tokens",
        "metadata",
        "parallel_tool_calls",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_p",
        "reasoning",
        "user",
        "prompt_cache_key",
    }
)
FREE_SCHEMA: Final = Raw(
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'
)
"""What a tool of free text takes as a function."""


class FreeText(Struct):
    """The arguments of such a function."""

    input: str = ""


class _InputText(Struct, tag_field="type", tag="input_text"):
    text: str


class _OutputText(Struct, tag_field="type", tag="output_text"):
    text: str


class _Refusal(Struct, tag_field="type", tag="refusal"):
    refusal: str


class _InputImage(Struct, tag_field="type", tag="input_image"):
    image_url: str
    detail: str | None = None


class _InputFile(Struct, tag_field="type", tag="input_file"):
    file_data: str
    filename: str | None = None


_Content = _InputText | _OutputText | _Refusal | _InputImage | _InputFile


class _Message(Struct):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[_Content]


class _Called(Struct, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str
    namespace: str | None = None


class _Freely(Struct, tag_field="type", tag="custom_tool_call"):
    call_id: str
    name: str
    input: str
    namespace: str | None = None


class _Output(Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str | list[_Content]


class _FreeOutput(Struct, tag_field="type", tag="custom_tool_call_output"):
    call_id: str
    output: str | list[_Content]


class _ReasoningText(Struct):
    text: str = ""


class _Reasoning(Struct, tag_field="type", tag="reasoning"):
    content: list[_ReasoningText] | None = None
    encrypted_content: str | None = None


_Item = _Called | _Freely | _Output | _FreeOutput | _Reasoning


class _Holder(Struct):
    item: _Item


class _Function(Struct, tag_field="type", tag="function"):
    name: str
    description: str | None = None
    parameters: Raw = NULL
    strict: bool | None = None


class _Format(Struct):
    type: str = "text"
    definition: str = ""


class _Custom(Struct, tag_field="type", tag="custom"):
    name: str
    description: str | None = None
    format: _Format | None = None


class _Namespace(Struct, tag_field="type", tag="namespace"):
    name: str
    tools: list[_Function | _Custom]
    description: str | None = None


class _Choice(Struct):
    type: Literal["function", "custom"]
    name: str
    namespace: str | None = None


class _TextFormat(Struct):
    type: Literal["text", "json_object", "json_schema"]
    name: str = "answer"
    schema: Raw = NULL
    strict: bool | None = None


class _Text(Struct):
    format: _TextFormat | None = None
    verbosity: str | None = None


class _Effort(Struct):
    effort: str | None = None
    summary: str | None = None


class _Body(Struct):
    model: str
    input: str | list[Raw]
    instructions: str | None = None
    max_output_tokens: int | None = None
    stream: bool | None = None
    tools: list[_Function | _Custom | _Namespace] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Choice | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    text: _Text | None = None
    reasoning: _Effort | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    top_logprobs: int | None = None
    background: bool | None = None


class _Kind(Struct):
    type: str | None = None


def read(body: bytes, notes: list[str]) -> Conversation:
    """Read a request to /v1/responses; what is left out of it is added to ``notes``.

    Raises:
        BadInputError: which field or item has no counterpart in other dialects, or is not of the API's shape.
    """
    members = sort_out(body, notes, carried=_CARRIED, refused=_REFUSED)
    asked = convert(body, _Body)
    if asked.background:
        raise untranslatable("background", "its engine answers at once or not at all")
    if asked.top_logprobs:
        raise untranslatable("top_logprobs", "its engine does not tell how likely tokens were")
    text, reasoning = asked.text or _Text(), asked.reasoning or _Effort()
    if reasoning.summary:
        notes.append("`reasoning.summary` was left out: what the engine shows of its reasoning is told as it is.")
    tools, grouped, free = _tools(asked.tools or ())
    instructions = (Message("system", (Text(asked.instructions),)),) if asked.instructions else ()
    return Conversation(
        model=asked.model,
        messages=(*instructions, *_messages(asked.input, notes, grouped)),
        stream=asked.stream is True,
        tools=tools,
        choice=_choice(asked.tool_choice, grouped, {tool.name for tool in tools}),
        parallel=asked.parallel_tool_calls,
        max_tokens=asked.max_output_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        form=_form(text.format),
        effort=reasoning.effort,
        verbosity=text.verbosity,
        user=asked.user,
        cache_key=asked.prompt_cache_key,
        free_tools=free,
        grouped=grouped,
        echo={name: members[name] for name in _ECHOED & members.keys()},
    )


def _messages(given: str | list[Raw], notes: list[str], grouped: Grouped) -> list[Message]:
    if isinstance(given, str):
        return [Message("user", (Text(given),))]
    messages: list[Message] = []
    for number, item in enumerate(given):
        message = _message(item, f"input[{number}]", notes, grouped)
        if messages and _together(messages[-1], message):
            messages[-1] = Message(message.role, (*messages[-1].parts, *message.parts))
        elif message.parts:
            messages.append(message)
    return messages


def _together(last: Message, new: Message) -> bool:
    """One answer is several items, and so are the results of its calls."""
    if new.role == "assistant":
        return last.role == "assistant"
    return bool(new.parts) and all(isinstance(part, Result) for part in (*last.parts, *new.parts))


def _message(item: Raw, place: str, notes: list[str], grouped: Grouped) -> Message:
    kind = convert(bytes(item), _Kind, place).type
    if kind in {None, "message"}:
        message = convert(bytes(item), _Message, place)
        role = "system" if message.role == "developer" else message.role
        return Message(role, _parts(message.content))
    part = _part(convert(b'{"item":%b}' % bytes(item), _Holder, place).item, notes, grouped)
    return Message("user" if isinstance(part, Result) else "assistant", () if part is None else (part,))


def _part(item: _Item, notes: list[str], grouped: Grouped) -> Part | None:
    match item:
        case _Called():
            return Call(item.call_id, _called(item, grouped), item.arguments)
        case _Freely():
            arguments = msgspec.json.encode(FreeText(item.input)).decode()
            return Call(item.call_id, _called(item, grouped), arguments)
        case _Output() | _FreeOutput():
            return Result(item.call_id, tuple(_media(item.output)))
        case _Reasoning():
            thought = "".join([each.text for each in item.content or ()])
            if item.encrypted_content or not thought:
                notes.append("Reasoning of earlier turns was left out: only the API that encrypted it can read it.")
                return None
            return Thought(thought)


def _called(call: _Called | _Freely, grouped: Grouped) -> str:
    return call.name if call.namespace is None else name_of(call.namespace, call.name, grouped)


def _parts(content: str | list[Any]) -> tuple[Part, ...]:
    return tuple(_media(content))


def _media(content: str | list[Any]) -> list[Text | Image | File]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_medium(part) for part in content]


def _medium(part: _Content) -> Text | Image | File:
    match part:
        case _InputText() | _OutputText():
            return Text(part.text)
        case _Refusal():
            return Text(part.refusal)
        case _InputImage():
            return image_of(part.image_url, part.detail)
        case _InputFile():
            return file_of(part.file_data, part.filename, "input_file.file_data")


def _tools(given: Sequence[_Function | _Custom | _Namespace]) -> tuple[tuple[Tool, ...], Grouped, frozenset[str]]:
    """The tools, those of groups by longer names; which these are; and which of all take free text."""
    tools, grouped, free = list[Tool](), Grouped(), set[str]()
    taken = {tool.name for tool in given if not isinstance(tool, _Namespace)}
    for one in given:
        more = about(one.name, one.description) if isinstance(one, _Namespace) else ""
        for tool in one.tools if isinstance(one, _Namespace) else (one,):
            name = tool.name
            if isinstance(one, _Namespace):
                name = long_name(one.name, tool.name, taken)
                grouped[name] = one.name, tool.name
                taken.add(name)
            if isinstance(tool, _Custom):
                free.add(name)
            tools.append(_tool(tool, name, more))
            more = ""
    return tuple(tools), grouped, frozenset(free)


def _tool(tool: _Function | _Custom, name: str, more: str) -> Tool:
    told = [tool.description or "", more]
    match tool:
        case _Function():
            return Tool(name, _paragraphs(told), tool.parameters, tool.strict)
        case _Custom():
            rules = "" if tool.format is None else tool.format.definition
            told.append(f"The input follows this grammar:\n{rules}" if rules else "")
            return Tool(name, _paragraphs(told), FREE_SCHEMA)


def _paragraphs(told: list[str]) -> str | None:
    return "\n\n".join(filter(None, told)) or None


def _choice(choice: str | _Choice | None, grouped: Grouped, names: set[str]) -> Choice | None:
    match choice:
        case None:
            return None
        case _Choice():
            plain = choice.namespace is None and choice.name in names
            return Choice("one", choice.name if plain else name_of(choice.namespace, choice.name, grouped))
        case "required":
            return Choice("any")
        case "none":
            return Choice("none")
        case _:
            return Choice("auto")


def _form(given: _TextFormat | None) -> Form | None:
    if given is None or given.type == "text":
        return None
    return Form("text.format", given.schema, given.name, given.strict)
