"""What is wrong with a request's body, told so that its author finds the place."""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from headway.core.errors import BadInputError
from headway.wire.surrogates import half_character

_SHOWN: Final = 100
"""Characters of a bad value that are sent back."""
_ARRAY_OR_NULL: Final = frozenset({b"[", b"n"})
"""How they begin in JSON."""
T = TypeVar("T")


def decoded(decoder: msgspec.json.Decoder[T], body: bytes, *, fix: str) -> T:
    """``body`` as ``decoder`` reads it.

    Args:
        decoder: of the type that the body should have.
        body: the request's.
        fix: the shape that it should have, in words.

    Raises:
        BadInputError: the body is not JSON, or a field is missing or of the wrong type.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadInputError(f"The request body has a field of the wrong type: {_brief(error)}.", fix=fix) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise no_json(body, error) from error


def no_json(body: bytes, error: Exception) -> BadInputError:
    """The error of a body that no decoder can read."""
    half = half_character(body)
    if half is not None:
        return BadInputError(
            f"The request body of {len(body)} bytes cannot be read: {half}.",
            fix="Cut texts between characters, never inside one: no engine could read it.",
        )
    return BadInputError(
        f"The request body of {len(body)} bytes is not valid JSON: {_brief(error)}.", fix="Send one JSON object."
    )


def check_tools(tools: Raw) -> None:
    """Check that ``tools``, out of a body that was decoded, is an array or nothing: engines fail over anything else.

    Raises:
        BadInputError: it is neither.
    """
    if bytes(tools)[:1] not in _ARRAY_OR_NULL:
        raise BadInputError(
            "The request body has a field of the wrong type: Expected `array | null` - at `$.tools`.",
            fix="Send `tools` as an array of objects, or leave it out.",
        )


def first_problem(
    array: Raw, name: str, decoder: msgspec.json.Decoder[list[Any]], item: type[Any], *, fix: str
) -> None:
    """Check that ``array`` is one, that it has items, and that each is an ``item``.

    Args:
        array: JSON text, out of a body that was decoded.
        name: the field that holds it.
        decoder: of a list of ``item``: one pass that builds next to nothing.
        item: what each should be; its only checked field is ``role``.
        fix: what to do about a bad item.

    Raises:
        BadInputError: it is no array, it is empty, or which item is bad and why.
    """
    if bytes(array)[:1] != b"[":
        raise BadInputError(
            f"The request body has a field of the wrong type: Expected `array` - at `$.{name}`.",
            fix=f"Send `{name}` as an array of objects with `role` and `content`.",
        )
    try:
        if not decoder.decode(array):
            raise BadInputError(f"The request's `{name}` is empty.", fix="Send at least one message.")
    except msgspec.ValidationError as error:
        place, problem = _first(array, name, item)
        raise BadInputError(f"The request's `{place}` cannot be used: {problem}.", fix=fix) from error


def _first(array: Raw, name: str, item: type[Any]) -> tuple[str, str]:
    each = msgspec.json.decode(array, type=list[Raw])
    number, problem = next((number, problem) for number, one in enumerate(each) if (problem := _problem(one, item)))
    return (f"{name}[{number}].role" if bytes(each[number])[:1] == b"{" else f"{name}[{number}]"), problem


def _problem(one: Raw, item: type[Any]) -> str:
    try:
        msgspec.json.decode(one, type=item)
    except msgspec.ValidationError as error:
        return str(error).removesuffix(" - at `$.role`")[:_SHOWN]
    return ""


def _brief(error: Exception) -> str:
    told = str(error)
    return told if len(told) <= 2 * _SHOWN else f"{told[:_SHOWN]} … {told[-_SHOWN:]}"
