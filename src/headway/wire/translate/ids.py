"""Ids of tool calls across dialects: Anthropic's takes only some characters, and ids must be the same at every turn."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_MARK: Final = "hw_"


def plain_id(call_id: str) -> str:
    """``call_id`` in Anthropic's characters: itself where it has no others, else a spelling that can be undone."""
    if _PLAIN.fullmatch(call_id) and not call_id.startswith(_MARK):
        return call_id
    return _MARK + urlsafe_b64encode(call_id.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def original_id(call_id: str) -> str:
    """What `plain_id` was given."""
    spelled = call_id.removeprefix(_MARK)
    if spelled == call_id:
        return call_id
    try:
        original = urlsafe_b64decode(spelled + "=" * (-len(spelled) % 4)).decode("utf-8", "surrogatepass")
    except ValueError:
        return call_id
    return original if plain_id(original) == call_id else call_id
