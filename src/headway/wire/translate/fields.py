"""What becomes of a request's fields that have no counterpart: refused where they change the meaning, else noted."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from headway.core.errors import BadInputError

_FIX: Final = "Leave it out, or ask a model whose engine speaks the dialect of this request."
_NOTHING: Final = frozenset({b"null", b"false", b"[]", b"{}", b'""'})
_SHOWN: Final = 200
T = TypeVar("T")


def untranslatable(field: str, why: str) -> BadInputError:
    """The error for ``field`` of the caller's request; ``why`` completes "cannot be translated for the engine: "."""
    return BadInputError(f"The request's `{field}` cannot be translated for the engine: {why}.", fix=_FIX)


def convert(body: bytes, shape: type[T], place: str = "") -> T:
    """``body``, which stands at ``place`` of the request if not at its root, in the shape that can be translated.

    Raises:
        BadInputError: which place in it has another shape.
    """
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        told = f"`{place}`: {error}"[:_SHOWN] if place else str(error)[:_SHOWN]
        raise BadInputError(f"The request cannot be translated for the engine: {told}.", fix=_FIX) from error


def sort_out(body: bytes, notes: list[str], *, carried: frozenset[str], refused: Mapping[str, str]) -> dict[str, Raw]:
    """All members of a request; those that are not ``carried`` over are noted.

    Args:
        body: a JSON object.
        notes: what was left out is added to them.
        carried: fields with a counterpart.
        refused: fields without which the answer would be another, and why they have no counterpart.

    Raises:
        BadInputError: one of ``refused`` is there and asks for something.
    """
    members = convert(body, dict[str, Raw])
    for name, value in members.items():
        if name in carried or bytes(value) in _NOTHING:
            continue
        if name in refused:
            raise untranslatable(name, refused[name])
        notes.append(f"`{name}` was left out: the engine's dialect has no such field.")
    return members
