"""What a call was asked and what it answered, out of every shape in which spans keep messages; texts become digests."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

import msgspec
from msgspec import Struct

from headway.core.prompt import Part
from headway.core.span import ToolCallRef
from headway.trace.sources.digests import part

_ROLES: Final = {"model": "assistant", "ai": "assistant", "human": "user", "developer": "system", "function": "tool"}
_KEPT: Final = 100_000
_DECORATION: Final = frozenset({"message", "message_content", "tool_call", "function"})
_DEEPEST: Final = 64
_SPEAKS: Final = frozenset({"role", "content", "parts", "contents", "text", "tool_calls"})
_INSTRUCTIONS: Final = ("system", "system_instruction", "instructions")


class Message(Struct, frozen=True, gc=False):
    """One message in plain words."""

    role: str
    text: str
    """All its text; tool calls as ``name(arguments)``, so that messages which only call tools differ."""
    calls: tuple[ToolCallRef, ...] = ()
    finish: str | None = None


class Parts:
    """Parts by text, each made once: a history that grows is sent again with every call."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int, int], Part] = {}

    def of(self, message: Message) -> Part:
        """The message without its text."""
        key = (message.role, len(message.text), hash(message.text))
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= _KEPT:
                self._made.clear()
            made = self._made[key] = part(message.role, message.text)
        return made


def decoded(value: object) -> object:
    """The JSON value of a text that is one; anything else as it is."""
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return cast("object", msgspec.json.decode(value))
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def messages(value: object, role: str) -> list[Message]:
    """The messages in a value: a list of them, one of them, a request or response that holds them, or a bare text.

    Args:
        value: JSON text or what one decodes to.
        role: of what does not say whose it is.
    """
    value = decoded(value)
    if isinstance(value, str):
        return [Message(role, value)] if value else []
    if isinstance(value, list):
        return _listed(cast("list[object]", value), role)
    if isinstance(value, dict):
        return _held(cast("dict[str, object]", value), role)
    return []


def indexed(attributes: Iterable[tuple[str, object]], role: str) -> list[Message]:
    """Messages spread over attributes by number, as ``0.message.content`` and ``0.tool_calls.1.name`` are."""
    root: dict[str, object] = {}
    for path, value in attributes:
        at = root
        *steps, last = [step for step in path.split(".") if step not in _DECORATION] or [path]
        for step in steps[:_DEEPEST]:
            below = at.get(step)
            if not isinstance(below, dict):
                below = at[step] = {}
            at = cast("dict[str, object]", below)
        at[last] = value
    held = _lists(root)
    return _listed(cast("list[object]", held), role) if isinstance(held, list) else []


def one(value: Mapping[str, object], role: str) -> Message:
    """One message: its role, its text, the tools that it calls."""
    said = value.get("role")
    role = _ROLES.get(said, said) if isinstance(said, str) and said else role
    texts: list[str] = []
    calls: list[ToolCallRef] = []
    for key in ("content", "parts", "contents", "text", "message"):
        if key in value:
            if _blocks(value[key], texts, calls):
                role = "tool"  # whoever's turn it is said to be: Anthropic and Google say the user's
            break
    for call in _each(value.get("tool_calls")):
        _call(call, texts, calls)
    finish = value.get("finish_reason")
    return Message(role, "\n".join(texts), tuple(calls), finish if isinstance(finish, str) else None)


def _listed(values: list[object], role: str) -> list[Message]:
    found: list[Message] = []
    for value in values:
        if isinstance(value, dict):
            found.extend(_held(cast("dict[str, object]", value), role))
        elif isinstance(value, str) and value:
            found.append(Message(role, value))
        elif isinstance(value, list):  # a batch: LangChain nests it
            found.extend(_listed(cast("list[object]", value), role))
    return found


def _held(value: dict[str, object], role: str) -> list[Message]:
    """A request's messages, a response's, or the one that the value itself is."""
    found = [one({"content": value[key]}, "system") for key in _INSTRUCTIONS if value.get(key)]
    config = value.get("config")
    if isinstance(config, dict):
        found.extend(_held({**cast("dict[str, object]", config), "contents": []}, role))
    for key in ("messages", "input", "prompt", "choices", "output"):
        if isinstance(value.get(key), list | str):
            return [*found, *messages(value[key], role)]
    if "role" not in value and isinstance(value.get("contents"), list):  # Google's requests
        return [*found, *messages(value["contents"], role)]
    inner = decoded(value.get("message", value.get("content")))
    if isinstance(inner, dict):  # an OpenAI choice; Google's responses
        finish = value.get("finish_reason")
        return [*found, one({"finish_reason": finish, **cast("dict[str, object]", inner)}, role)]
    if "type" in value and "role" not in value:  # a block without a message around it
        return [*found, one({"content": [value]}, role)]
    return [*found, one(value, role)] if value.keys() & _SPEAKS else found


def _blocks(content: object, texts: list[str], calls: list[ToolCallRef]) -> bool:
    """Take up the blocks of a message; whether they are nothing but tools' results."""
    if isinstance(content, str) and not content.startswith('[{"'):
        if content:
            texts.append(content)
        return False
    results = 0
    blocks = _each(decoded(content))
    for one_block in blocks:
        if isinstance(one_block, str):
            texts.append(one_block)
        if not isinstance(one_block, dict):
            continue
        block = cast("dict[str, object]", one_block)
        text = block.get("text", block.get("thinking"))
        if isinstance(text, str):
            texts.append(text)
        elif block.get("type") in {"text", "reasoning", "thinking"}:
            texts.append(plain(block.get("content")))
        elif (answered := _response(block)) is not None:
            texts.append(answered)
            results += 1
        else:
            _call(block, texts, calls)
    return 0 < results == len(blocks)


def _response(block: dict[str, object]) -> str | None:
    """The text of a tool's result, where the block is one."""
    held = block.get("function_response")
    if isinstance(held, dict):
        return plain(cast("dict[str, object]", held).get("response"))
    if block.get("type") in {"tool_call_response", "tool_result", "tool-result"}:
        return plain(next((block[key] for key in ("response", "result", "output", "content") if key in block), None))
    return None


def _call(value: object, texts: list[str], calls: list[ToolCallRef]) -> None:
    if not isinstance(value, dict):
        return
    block = cast("dict[str, object]", value)
    held = block.get("function", block.get("function_call"))
    inner = cast("dict[str, object]", held) if isinstance(held, dict) else block
    name = next((inner[key] for key in ("name", "toolName") if isinstance(inner.get(key), str)), None)
    if not isinstance(name, str):
        texts.append(plain(block))
        return
    given = next((inner[key] for key in ("arguments", "args", "input") if key in inner), None)
    call_id = next((block[key] for key in ("id", "toolCallId", "call_id") if isinstance(block.get(key), str)), None)
    texts.append(f"{name}({plain(given)})")
    if isinstance(call_id, str):
        calls.append(ToolCallRef(call_id, name))


def _each(value: object) -> list[object]:
    value = decoded(value)
    if isinstance(value, list):
        return cast("list[object]", value)
    return [] if value is None else [value]


def plain(value: object) -> str:
    """A text as it is; anything else as JSON, whose keys are in order."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()


def _lists(value: object) -> object:
    """Dicts whose keys are numbers made lists, in order."""
    if not isinstance(value, dict):
        return value
    held = cast("dict[str, object]", value)
    if held and all(key.isdecimal() for key in held):
        return [_lists(held[key]) for key in sorted(held, key=int)]
    return {key: _lists(below) for key, below in held.items()}
