"""A conversation, written as Anthropic's Messages API has it."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw

from headway.wire.openai import NULL
from headway.wire.translate.arguments import as_object
from headway.wire.translate.conversation import (
    Call,
    Choice,
    Conversation,
    File,
    Image,
    Message,
    Part,
    Result,
    Text,
    Thought,
    Tool,
)
from headway.wire.translate.fields import untranslatable
from headway.wire.translate.ids import plain_id

_ANY_OBJECT: Final = Raw(b'{"type":"object","properties":{}}')
_MOST_TOKENS: Final = 32_000
"""What an answer may have where the caller set no limit; all models that the API still serves allow it."""
_PDF: Final = "application/pdf"
_EFFORTS: Final = {"minimal": "low"}


def write(asked: Conversation, notes: list[str]) -> bytes:
    """The request's body. What is left out of it, or put differently, is added to ``notes``.

    Raises:
        BadInputError: which of the caller's fields has no counterpart here.
    """
    system, messages = _split(asked.messages, notes)
    body: dict[str, Any] = {
        "model": asked.model,
        "max_tokens": _limit(asked, notes),
        "messages": [{"role": message.role, "content": _content(message.parts, notes)} for message in messages],
    }
    if system:
        body["system"] = _content(system, notes)
    if asked.stream:
        body["stream"] = True
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
        if (choice := _choice(asked.choice, asked.parallel)) is not None:
            body["tool_choice"] = choice
    if asked.stop:
        body["stop_sequences"] = _stop(asked.stop, notes)
    if asked.user is not None:
        body["metadata"] = {"user_id": asked.user}
    body |= _sampling(asked, notes) | _output(asked)
    for field, value in (("verbosity", asked.verbosity), ("prompt_cache_key", asked.cache_key)):
        if value is not None:
            notes.append(f"`{field}` was left out: the engine's dialect has no such field.")
    return msgspec.json.encode(body)


def _split(messages: tuple[Message, ...], notes: list[str]) -> tuple[list[Part], list[Message]]:
    """The system prompt, and the messages after it. System messages further on stay where they are."""
    first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    system = [part for message in messages[:first] for part in message.parts]
    rest = [message for message in messages[first:] if any(map(_said, message.parts))]
    if len(rest) < len(messages) - first:
        notes.append("Messages without content were left out: the engine's dialect has none.")
    return [part for part in system if _said(part)], rest


def _said(part: Part) -> bool:
    """The API takes no texts without words, nor thoughts that it did not sign."""
    match part:
        case Text():
            return bool(part.text.strip())
        case Thought():
            return bool(part.signature or part.hidden)
        case _:
            return True


def _content(parts: Iterable[Part], notes: list[str]) -> list[dict[str, Any]] | str:
    if any(isinstance(part, Thought) and not _said(part) for part in parts):
        notes.append("Thinking of earlier turns was left out: the engine takes only what it signed.")
    said = [part for part in parts if _said(part)]
    if len(said) == 1 and isinstance(said[0], Text):
        return said[0].text
    said.sort(key=lambda part: not isinstance(part, Result))  # the API wants tools' results first
    return [_block(part, notes) for part in said]


def _block(part: Part, notes: list[str]) -> dict[str, Any]:
    block: dict[str, Any]
    match part:
        case Text():
            block = {"type": "text", "text": part.text}
        case Image():
            block = _image(part, notes)
        case File():
            block = _file(part)
        case Thought(hidden=str(hidden)) if hidden:
            block = {"type": "redacted_thinking", "data": hidden}
        case Thought():
            block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case Call():
            block = {"type": "tool_use", "id": plain_id(part.id), "name": part.name}
            block["input"] = as_object(part.arguments)
        case Result():
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": plain_id(part.call_id)}
            result["content"] = _content(part.parts, notes)
            block = result | {"is_error": True} if part.failed else result
    return block


def _image(image: Image, notes: list[str]) -> dict[str, Any]:
    if image.detail not in {None, "auto"}:
        notes.append("`detail` of an image was left out: the engine's dialect has no such field.")
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _file(file: File) -> dict[str, Any]:
    if file.media_type != _PDF:
        raise untranslatable("file", f"the engine reads PDF, not {file.media_type}")
    source = {"type": "base64", "media_type": _PDF, "data": file.data}
    document: dict[str, Any] = {"type": "document", "source": source}
    return document if file.name is None else document | {"title": file.name}


def _limit(asked: Conversation, notes: list[str]) -> int:
    if asked.max_tokens is not None:
        return asked.max_tokens
    notes.append(f"The answer was limited to {_MOST_TOKENS} tokens: the engine's dialect needs a limit.")
    return _MOST_TOKENS


def _tool(tool: Tool) -> dict[str, Any]:
    schema = _ANY_OBJECT if tool.schema == NULL else tool.schema
    definition: dict[str, Any] = {"name": tool.name, "input_schema": schema}
    if tool.description is not None:
        definition["description"] = tool.description
    return definition | {"strict": True} if tool.strict else definition


def _choice(choice: Choice | None, parallel: bool | None) -> dict[str, Any] | None:
    if choice is None and parallel is not False:
        return None
    mode = Choice("auto") if choice is None else choice
    written: dict[str, Any] = {"type": "tool", "name": mode.name} if mode.mode == "one" else {"type": mode.mode}
    if parallel is False and mode.mode != "none":
        written["disable_parallel_tool_use"] = True
    return written


def _stop(stop: tuple[str, ...], notes: list[str]) -> list[str]:
    taken = [text for text in stop if text.strip()]
    if len(taken) < len(stop):
        notes.append("Stop sequences of white space alone were left out: the engine's dialect takes none.")
    return taken


def _sampling(asked: Conversation, notes: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if asked.temperature is not None:
        values["temperature"] = min(1.0, asked.temperature)
        if asked.temperature > 1:
            notes.append(f"`temperature` of {asked.temperature:g} became 1: the engine's dialect has no more.")
    if asked.top_p is not None:
        values["top_p"] = asked.top_p
    return values


def _output(asked: Conversation) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if asked.effort is not None and asked.effort != "none":
        config["effort"] = _EFFORTS.get(asked.effort, asked.effort)
    if asked.form is not None:
        if asked.form.schema == NULL:
            raise untranslatable(asked.form.field, "the engine gives JSON only where it is given a schema")
        config["format"] = {"type": "json_schema", "schema": asked.form.schema}
    written: dict[str, Any] = {"output_config": config} if config else {}
    return written | {"thinking": {"type": "disabled"}} if asked.effort == "none" else written
