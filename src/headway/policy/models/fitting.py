"""Whether an answer has the form that was asked for."""

from typing import Any, Final

import jsonschema_rs
import msgspec

_PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=1 << 20)
"""Patterns are a stranger's: matched in linear time, and no larger than this when compiled (bytes)."""


def keeps(schema: bytes, text: str) -> bool | None:
    """Whether ``text`` is JSON of ``schema``.

    Args:
        schema: a JSON schema as JSON text; ``null``: any JSON will do.
        text: the answer's.

    Returns:
        ``None`` where nobody can say: the schema is none, or refers to one that would have to be fetched.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    try:
        wanted = msgspec.json.decode(schema)
        if wanted is None:
            return True
        return jsonschema_rs.validator_for(wanted, retriever=_fetch_nothing, pattern_options=_PATTERNS).is_valid(value)
    except (ValueError, RecursionError):
        return None


def _fetch_nothing(uri: str) -> Any:  # noqa: ANN401 - the library's signature
    msg = f"{uri} is not fetched"
    raise ValueError(msg)
