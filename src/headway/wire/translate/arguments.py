"""Arguments of tool calls: JSON text in OpenAI's dialects, an object in Anthropic's. Models write neither at times."""

from typing import Final

import msgspec
from msgspec import Raw

_UNREADABLE: Final = "unreadable_arguments"
"""Stands for arguments that are no JSON object, which Anthropic's dialect has no place for; undone on the way back."""


def as_object(arguments: str) -> Raw:
    """``arguments`` as a JSON object, byte for byte where they are one."""
    if not arguments.strip():
        return Raw(b"{}")
    raw = arguments.encode("utf-8", "replace")
    try:
        msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return Raw(msgspec.json.encode({_UNREADABLE: arguments}))
    return Raw(raw)


def as_text(given: Raw) -> str:
    """An object as the JSON text that `as_object` was given."""
    raw = bytes(given)
    if _UNREADABLE.encode() in raw:
        try:
            members = msgspec.json.decode(raw, type=dict[str, str])
        except (msgspec.DecodeError, RecursionError):
            return raw.decode()
        if list(members) == [_UNREADABLE]:
            return members[_UNREADABLE]
    return raw.decode() or "{}"
