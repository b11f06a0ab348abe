"""Plain values out of attributes, which tools write as they please: numbers as text, lists as JSON, truth as a word."""

from collections.abc import Iterable
from math import isfinite
from typing import Final, cast

import msgspec

_MOST: Final = 10**15
"""A count above this is no count."""
NO_COUNT: Final = "a token count that cannot be one (negative, not whole, too large or no number): {}"
"""Why a count is left unknown that the record gives under a name."""
NO_NUMBER: Final = "a number that is none, left unknown: {}"
_WORDS: Final = {"true": True, "false": False, "success": True, "error": False}
_LARGEST: Final = 1e300
"""Integers of JSON may be larger than any float."""


def text(value: object) -> str | None:
    """A text that says something; the first of a list of them, itself written as JSON or not."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value or value[0] not in {"[", '"'}:
            return value or None
        try:
            value = cast("object", msgspec.json.decode(value))
        except (msgspec.DecodeError, RecursionError):
            return value
    if isinstance(value, list):
        held = cast("list[object]", value)
        value = held[0] if held else None
    return value if isinstance(value, str) and value else None


def number(value: object) -> float | None:
    """A finite number, which may be written as text."""
    if value is None or isinstance(value, bool):
        return None
    if type(value) is float:
        return value if -_LARGEST < value < _LARGEST else None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and abs(value) < _LARGEST and isfinite(value) else None


def count(value: object) -> int | None:
    """A number of things: whole and not negative."""
    if value is None:
        return None
    if type(value) is int:
        return value if 0 <= value < _MOST else None
    found = number(value)
    return int(found) if found is not None and 0 <= found < _MOST and found.is_integer() else None


def impossible(values: Iterable[tuple[str, object]]) -> list[str]:
    """Names of those given as a number of things that cannot be one: negative, broken, infinite, or no number."""
    odd = [one for one in values if not (one[1] is None or (type(one[1]) is int and 0 <= one[1] < _MOST))]
    return [name for name, value in odd if value != "" and count(value) is None]


def truth(value: object) -> bool | None:
    """True or false, which may be written as a word."""
    if value is None or isinstance(value, bool):
        return value
    return _WORDS.get(value.lower()) if isinstance(value, str) else None
