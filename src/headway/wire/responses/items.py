"""The items that a Responses request is made of, as messages of a chat: what identity reads conversations from."""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from headway.wire.openai import NULL

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_UNSAID: Final = frozenset({"reasoning", "item_reference", "compaction"})
"""What a client copies from answers and nobody said."""
_TEXTS: Final = frozenset({"input_text", "output_text", "text"})


class Item(Struct, gc=False):
    """One item of ``input``, whatever its type; an easy message has none."""

    type: str = "message"
    role: str = "user"
    content: Any = None
    call_id: str = ""
    name: str = ""
    arguments: str | None = None
    input: str | None = None
    output: Any = None


_items_decoder: Final = msgspec.json.Decoder(str | list[Item])


def as_messages(instructions: str | None, given: Raw) -> Raw:
    """``instructions`` and ``input`` as a JSON array of chat messages.

    What is of a kind that chats do not have stands as JSON in a message of its own, so that it still tells two
    conversations apart. Input that is not of the API's shape is no conversation: ``null``.
    """
    try:
        items = _items_decoder.decode(given)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return NULL
    messages: list[dict[str, Any]] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    if isinstance(items, str):
        messages.append({"role": "user", "content": items})
    else:
        for item in items:
            _add(item, messages)
    return Raw(msgspec.json.encode(messages))


def _add(item: Item, messages: list[dict[str, Any]]) -> None:
    if item.type == "message":
        messages.append({"role": item.role, "content": _content(item.content)})
    elif item.type in _CALLS:
        said = item.arguments if item.input is None else item.input
        call = {"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": said or ""}}
        last = messages[-1] if messages else {}
        if last.get("role") == "assistant":  # one answer's text and calls are several items
            last.setdefault("tool_calls", []).append(call)
        else:
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    elif item.type in _RESULTS:
        messages.append({"role": "tool", "tool_call_id": item.call_id, "content": _content(item.output)})
    elif item.type not in _UNSAID:
        other = msgspec.json.encode(item).decode()
        messages.append({"role": "assistant", "content": other})


def _content(content: Any) -> Any:  # noqa: ANN401 - JSON, on both sides
    """Content of a message: text as chats have it, other parts as they are."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else msgspec.json.encode(content).decode()
    parts: list[Any] = content  # pyright: ignore[reportUnknownVariableType] - JSON
    return [_part(part) for part in parts]


def _part(part: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    match part:
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return {"type": "other", "source": part}
