"""Whether an answer has the form that was asked for."""

from functools import cache
from importlib import import_module
from typing import Any, Final

import msgspec

_PATTERN_BYTES: Final = 1 << 20
"""Largest pattern, compiled. Patterns are a stranger's, so they are matched in linear time."""


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
        return True if wanted is None else bool(_validator(wanted).is_valid(value))
    except (ValueError, RecursionError):
        return None


def _validator(schema: object) -> Any:  # noqa: ANN401 - imported when first needed, as few gateways ever are asked
    library = _library()
    bounds = library.RegexOptions(size_limit=_PATTERN_BYTES)
    return library.validator_for(schema, retriever=_fetch_nothing, pattern_options=bounds)


@cache
def _library() -> Any:  # noqa: ANN401 - as above
    return import_module("jsonschema_rs")


def _fetch_nothing(uri: str) -> Any:  # noqa: ANN401 - the library's signature
    msg = f"{uri} is not fetched"
    raise ValueError(msg)
