"""A request in Anthropic's dialect, read into a conversation."""

from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from headway.wire.openai import NULL
from headway.wire.translate.arguments import as_text
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
    Role,
    Text,
    Thought,
    Tool,
)
from headway.wire.translate.fields import convert, sort_out, untranslatable
from headway.wire.translate.ids import original_id

_CARRIED: Final = frozenset(
    [
        "model",
        "messages",
        "max_tokens",
        "system",
        "stream",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "stop_sequences",
        "output_config",
        "thinking",
        "metadata",
    ]
)
_REFUSED: Final = {
    "container": "its engine runs no containers",
    "mcp_servers": "its engine calls no MCP servers",
}
_EFFORTS: Final = ((4096, "low"), (16384, "medium"))
"""OpenAI's words for a thinking budget of up to so many tokens; above, it is high."""


class _TextBlock(Struct, tag_field="type", tag="text"):
    text: str


class _Base64(Struct, tag_field="type", tag="base64"):
    media_type: str
    data: str


class _Url(Struct, tag_field="type", tag="url"):
    url: str


class _Plain(Struct, tag_field="type", tag="text"):
    data: str


class _Inline(Struct, tag_field="type", tag="content"):
    content: str | list[_TextBlock]


class _ImageBlock(Struct, tag_field="type", tag="image"):
    source: _Base64 | _Url


class _DocumentBlock(Struct, tag_field="type", tag="document"):
    source: _Base64 | _Plain | _Inline
    title: str | None = None


class _ReferenceBlock(Struct, tag_field="type", tag="tool_reference"):
    tool_name: str


class _ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    thinking: str
    signature: str = ""


class _RedactedBlock(Struct, tag_field="type", tag="redacted_thinking"):
    data: str


class _ToolUseBlock(Struct, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Raw]


class _ToolResultBlock(Struct, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: str | list[_TextBlock | _ImageBlock | _DocumentBlock | _ReferenceBlock] | None = None
    is_error: bool | None = None


_Block = (
    _TextBlock
    | _ImageBlock
    | _DocumentBlock
    | _ReferenceBlock
    | _ThinkingBlock
    | _RedactedBlock
    | _ToolUseBlock
    | _ToolResultBlock
)


class _Message(Struct):
    role: Role
    content: str | list[_Block]


class _Tool(Struct):
    name: str
    type: str | None = None
    description: str | None = None
    input_schema: Raw = NULL
    strict: bool | None = None


class _Choice(Struct):
    type: Literal["auto", "any", "tool", "none"]
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class _Format(Struct):
    type: Literal["json_schema"]
    schema: Raw


class _Output(Struct):
    effort: str | None = None
    format: _Format | None = None


class _Thinking(Struct):
    type: str
    budget_tokens: int | None = None


class _Metadata(Struct):
    user_id: str | None = None


class _Body(Struct):
    model: str
    messages: list[_Message]
    max_tokens: int | None = None
    system: str | list[_TextBlock] | None = None
    stream: bool | None = None
    tools: list[_Tool] | None = None
    tool_choice: _Choice | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: list[str] | None = None
    output_config: _Output | None = None
    thinking: _Thinking | None = None
    metadata: _Metadata | None = None


def read(body: bytes, notes: list[str]) -> Conversation:
    """Read a request to /v1/messages; what is left out of it is added to ``notes``.

    Raises:
        BadInputError: which field has no counterpart in other dialects, or is not of the API's shape.
    """
    sort_out(body, notes, carried=_CARRIED, refused=_REFUSED)
    asked = convert(body, _Body)
    if b'"cache_control"' in body:
        notes.append("`cache_control` was left out: the engine decides itself what it caches.")
    choice, output = asked.tool_choice, asked.output_config or _Output()
    system = () if asked.system is None else (Message("system", _parts(asked.system, notes)),)
    return Conversation(
        model=asked.model,
        messages=(*system, *[Message(each.role, _parts(each.content, notes)) for each in asked.messages]),
        stream=asked.stream is True,
        tools=tuple([_tool(number, tool) for number, tool in enumerate(asked.tools or ())]),
        choice=None if choice is None else _choice(choice),
        parallel=False if choice is not None and choice.disable_parallel_tool_use else None,
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        stop=tuple(asked.stop_sequences or ()),
        form=None if output.format is None else Form("output_config.format", output.format.schema, strict=True),
        effort=output.effort or _effort(asked.thinking, notes),
        user=_user(asked.metadata, notes),
    )


def _parts(content: str | list[Any], notes: list[str]) -> tuple[Part, ...]:
    return (Text(content),) if isinstance(content, str) else tuple([_part(block, notes) for block in content])


def _part(block: _Block, notes: list[str]) -> Part:
    match block:
        case _ThinkingBlock():
            return Thought(block.thinking, block.signature)
        case _RedactedBlock():
            return Thought(hidden=block.data)
        case _ToolUseBlock():
            return Call(original_id(block.id), block.name, as_text(Raw(msgspec.json.encode(block.input))))
        case _ToolResultBlock():
            return Result(original_id(block.tool_use_id), _results(block, notes), block.is_error is True)
        case _:
            return _medium(block, notes)


def _results(block: _ToolResultBlock, notes: list[str]) -> tuple[Text | Image | File, ...]:
    content = block.content
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple([_medium(each, notes) for each in content])


def _medium(
    block: _TextBlock | _ImageBlock | _DocumentBlock | _ReferenceBlock, notes: list[str]
) -> Text | Image | File:
    match block:
        case _TextBlock():
            return Text(block.text)
        case _ReferenceBlock():
            return Text(block.tool_name)
        case _DocumentBlock(source=_Base64() as source):
            return File(source.data, source.media_type, block.title)
        case _DocumentBlock():
            return _titled(block.title, _words(block.source), notes)
        case _ImageBlock():
            return _image(block.source)


def _image(source: _Base64 | _Url) -> Image:
    match source:
        case _Url():
            return Image(url=source.url)
        case _Base64():
            return Image(data=source.data, media_type=source.media_type)


def _words(source: _Base64 | _Plain | _Inline) -> str:
    match source:
        case _Plain() | _Base64():
            return source.data
        case _Inline(content=str(words)):
            return words
        case _Inline():
            return "\n".join([block.text for block in source.content if isinstance(block, _TextBlock)])


def _titled(title: str | None, words: str, notes: list[str]) -> Text:
    if not title:
        return Text(words)
    notes.append("A document's title was written above its text.")
    return Text(f"{title}\n\n{words}")


def _tool(number: int, tool: _Tool) -> Tool:
    if tool.type not in {None, "custom"}:
        raise untranslatable(f"tools[{number}]", f"no engine of another dialect knows tools of the type {tool.type!r}")
    return Tool(tool.name, tool.description, tool.input_schema, tool.strict)


def _choice(choice: _Choice) -> Choice:
    match choice.type:
        case "tool":
            return Choice("one", choice.name)
        case mode:
            return Choice(mode)


def _effort(thinking: _Thinking | None, notes: list[str]) -> str | None:
    if thinking is None:
        return None
    if thinking.type == "enabled" and thinking.budget_tokens is not None:
        budget = thinking.budget_tokens
        effort = next((word for most, word in _EFFORTS if budget <= most), "high")
        notes.append(f"`thinking.budget_tokens` of {budget} became a reasoning effort of {effort}.")
        return effort
    notes.append(f"`thinking` of the type {thinking.type[:20]} was left out: the engine decides itself.")
    return None


def _user(metadata: _Metadata | None, notes: list[str]) -> str | None:
    user = None if metadata is None else metadata.user_id
    longest = 64
    if user is not None and len(user) > longest:
        notes.append(f"`metadata.user_id` was left out: other dialects take at most {longest} characters.")
        return None
    return user
