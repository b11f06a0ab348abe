"""A conversation, written as OpenAI's chat completions have it."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw

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

_ANY_OBJECT: Final = Raw(b'{"type":"object","properties":{}}')
_ENOUGH: Final = "max_completion_tokens"


def write(asked: Conversation, notes: list[str]) -> bytes:
    """The request's body. What is left out of it, or put differently, is added to ``notes``."""
    body: dict[str, Any] = {"model": asked.model, "messages": _messages(asked.messages, notes)}
    if asked.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
        if asked.choice is not None:
            body["tool_choice"] = _choice(asked.choice)
        if asked.parallel is not None:
            body["parallel_tool_calls"] = asked.parallel
    if asked.stop:
        body["stop"] = list(asked.stop)
    if asked.form is not None:
        body["response_format"] = _form(asked.form)
    values = {
        _ENOUGH: asked.max_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "reasoning_effort": asked.effort,
        "verbosity": asked.verbosity,
        "user": asked.user,
        "prompt_cache_key": asked.cache_key,
    }
    body |= {name: value for name, value in values.items() if value is not None}
    return msgspec.json.encode(body)


def _messages(messages: Iterable[Message], notes: list[str]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "assistant":
            written.append(_assistant(message.parts, notes))
            continue
        results = [part for part in message.parts if isinstance(part, Result)]
        written += [{"role": "tool", "tool_call_id": each.call_id, "content": _result(each)} for each in results]
        media = [_medium(part) for result in results for part in _shown(result, notes)]
        said = media + [_medium(part) for part in message.parts if isinstance(part, Text | Image | File)]
        if said or not results:
            written.append({"role": message.role, "content": _content(said)})
    if written and written[-1]["role"] == "assistant":
        notes.append("The last message is the assistant's: most engines answer it, and few go on from its last word.")
    return written


def _assistant(parts: Iterable[Part], notes: list[str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    texts = [part.text for part in parts if isinstance(part, Text)]
    calls = [part for part in parts if isinstance(part, Call)]
    thoughts = [part for part in parts if isinstance(part, Thought)]
    message["content"] = "".join(texts) if texts or not calls else None
    ours = "".join([thought.text for thought in thoughts if not (thought.signature or thought.hidden)])
    if ours:
        message["reasoning_content"] = ours
    if any(thought.signature or thought.hidden for thought in thoughts):
        notes.append("Thinking of earlier turns was left out: only the API that signed it can read it.")
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return message


def _result(result: Result) -> str:
    words = "\n".join([part.text for part in result.parts if isinstance(part, Text)])
    if not result.failed or words[:5].lower() == "error":
        return words
    return f"Error: {words}" if words else "Error"


def _shown(result: Result, notes: list[str]) -> list[Text | Image | File]:
    """What a tool returned beside words, which a tool's message cannot hold: a user's message shows it."""
    media = [part for part in result.parts if not isinstance(part, Text)]
    if not media:
        return []
    notes.append("What a tool returned beside text was put into a message of the user's after it.")
    return [Text(f"Returned by the tool call {result.call_id}:"), *media]


def _medium(part: Text | Image | File) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            image = {"url": part.url or f"data:{part.media_type};base64,{part.data}"}
            return {"type": "image_url", "image_url": image if part.detail is None else image | {"detail": part.detail}}
        case File():
            name = part.name or "document"
            return {
                "type": "file",
                "file": {"filename": name, "file_data": f"data:{part.media_type};base64,{part.data}"},
            }


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": _ANY_OBJECT if tool.schema == NULL else tool.schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _choice(choice: Choice) -> str | dict[str, Any]:
    match choice.mode:
        case "any":
            return "required"
        case "one":
            return {"type": "function", "function": {"name": choice.name}}
        case mode:
            return mode


def _form(form: Form) -> dict[str, Any]:
    if form.schema == NULL:
        return {"type": "json_object"}
    schema: dict[str, Any] = {"name": form.name, "schema": form.schema}
    return {"type": "json_schema", "json_schema": schema if form.strict is None else schema | {"strict": form.strict}}
