"""What LangChain writes of its own objects into traces, whoever keeps them: its messages, made plain ones."""

from typing import Final, cast

from msgspec import Struct

from headway.trace.sources.fields.messages import decoded

Fields = dict[str, object]

_ROLES: Final = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "ToolMessage": "tool",
    "function": "tool",
    "FunctionMessage": "tool",
    "chat": "user",
    "ChatMessage": "user",
}
_DEEPEST: Final = 8
"""Lists and wrappers that may lie around a message."""


class ToolResult(Struct, frozen=True):
    """The result of a tool, as a message that says which call it answers."""

    name: str
    id: str
    failed: bool


def plain_messages(value: object, deepest: int = _DEEPEST) -> object:
    """A recorded input or output with each message of LangChain's in it as one with a role; all else as it is."""
    value = decoded(value)
    if deepest and isinstance(value, list):
        found = [plain_messages(one, deepest - 1) for one in cast("list[object]", value)]
        return [one for one in found if not _defines_tool(one)]
    if not deepest or not isinstance(value, dict):
        return value
    held = cast("Fields", value)
    message = _message(held)
    if message is not None:
        return message
    generations = held.get("generations")
    if isinstance(generations, list):
        return {"choices": [_generated(one) for one in _flat(cast("list[object]", generations))]}
    if isinstance(held.get("messages"), list):
        return {**held, "messages": plain_messages(held["messages"], deepest - 1)}
    return held


def tool_result(output: object) -> ToolResult | None:
    """The tool whose result an output is, where it is LangChain's message of one."""
    if isinstance(output, str) and "tool_call_id" not in output:
        return None
    value = decoded(output)
    if not isinstance(value, dict):
        return None
    held = cast("Fields", value)
    found = _fields(_inside(held) or held.get("output") or held)
    name, answers = found.get("name"), found.get("tool_call_id")
    if found.get("type") != "tool" or not isinstance(name, str) or not isinstance(answers, str):
        return None
    return ToolResult(name, answers, found.get("status") == "error")


def _message(held: Fields) -> Fields | None:
    """A message with a role, where it is one of LangChain's or carries what only those do."""
    kind = held.get("type")
    inside = _inside(held)
    if inside is not None:
        names = held.get("id")
        kind = cast("list[object]", names)[-1] if isinstance(names, list) and names else kind
        held = {key: found for key, found in inside.items() if key != "type"}
    role = held.get("role") or _ROLES.get(kind if isinstance(kind, str) else "")
    if role is None or ("content" not in held and "tool_calls" not in held):
        return None
    extra = _fields(held.get("additional_kwargs"))
    return {
        "role": role,
        "content": held.get("content"),
        "tool_calls": held.get("tool_calls") or extra.get("tool_calls"),
        "tool_call_id": held.get("tool_call_id"),
    }


def _inside(held: Fields) -> Fields | None:
    """What a serialised object or a wrapped message holds."""
    if held.get("lc") == 1:
        return _fields(held.get("kwargs"))
    kind = held.get("type")
    return _fields(held.get("data")) or None if isinstance(kind, str) and kind in _ROLES else None


def _generated(value: object) -> Fields:
    held = _fields(value)
    message = _message(_fields(held.get("message"))) or {"role": "assistant", "content": held.get("text")}
    return {"message": message, "finish_reason": _fields(held.get("generation_info")).get("finish_reason")}


def _flat(values: list[object]) -> list[object]:
    return [one for value in values for one in (cast("list[object]", value) if isinstance(value, list) else [value])]


def _defines_tool(value: object) -> bool:
    """Whether a message is none, but the definition of a tool, which Langfuse's handler lists among them."""
    return isinstance(value, dict) and _fields(cast("Fields", value).get("content")).get("type") == "function"


def _fields(value: object) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}
