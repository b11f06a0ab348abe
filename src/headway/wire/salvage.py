"""JSON into typed values where some of it is not of the type that it should be: that is left out, and named."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

Value = TypeVar("Value")
Path = Sequence[str | int]
"""Names of fields, keys of maps and places in arrays, from the outermost in."""

_MOST_READ: Final = 256 * 1024 * 1024
"""Bytes that may be read again on account of one document's wrong fields, each of which has it read once more."""
_FEW: Final = 8
"""Wrong fields that are borne whatever the document's size."""
_WHERE: Final = re.compile(r"`\$([^`]*)`\Z")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_SOME_KEY: Final = -1
"""Stands for a key of a map, which msgspec does not name: it writes ``[...]``."""
_NUMBER: Final = re.compile(r"Expected `(?:int|float)\b[^`]*`, got `str`")
_AS_TEXT: Final = re.compile(rb'"(-?\d{1,18}(?:\.\d{1,18})?)"')
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[Raw])


_NOTHING: Final[Mapping[str, str]] = {}


def salvage(
    decoder: msgspec.json.Decoder[Value], data: bytes | Raw, spoils: Mapping[str, str] = _NOTHING
) -> tuple[Value, Sequence[str]]:
    """A value, and the names of the fields that had to be left out of it since they are not of their type.

    A number that is written as a text is read as that number. An object without a field that it must have is left out
    whole. What is null says nothing, so it is left out without a word.

    Args:
        decoder: of the value's type.
        data: the JSON.
        spoils: by a field's name, that of the one beside it which means nothing without it and is left out with it.

    Raises:
        msgspec.ValidationError: what is wrong cannot be left out, or too much is.
        msgspec.DecodeError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return decoder.decode(data), ()
    except msgspec.ValidationError as error:
        return _without_what_is_wrong(decoder, bytes(data), error, spoils)


def _without_what_is_wrong(
    decoder: msgspec.json.Decoder[Value], data: bytes, error: msgspec.ValidationError, spoils: Mapping[str, str]
) -> tuple[Value, Sequence[str]]:
    left_out: list[str] = []
    for _ in range(max(_FEW, _MOST_READ // len(data))):
        told = _path(error)
        path = _found(decoder, data, told)
        if not path:
            break
        wrong = _at(data, path)
        number = _AS_TEXT.fullmatch(wrong) if _NUMBER.match(str(error)) else None
        data = bytes(_with(data, path, None if number is None else Raw(number[1])))
        if number is None and wrong != b"null":
            left_out.append(_name(told))
            beside = spoils.get(str(path[-1]))
            if beside is not None:
                data = bytes(_with(data, [*path[:-1], beside], None))
        try:
            return decoder.decode(data), left_out
        except msgspec.ValidationError as another:
            error = another
    raise error


def _path(error: msgspec.ValidationError) -> Path:
    """Where it is, as far as the error tells."""
    told = _WHERE.search(str(error))
    steps = _STEP.findall(told[1]) if told else []
    return [name or (int(place) if place.isdecimal() else _SOME_KEY) for name, place in steps]


def _found(decoder: msgspec.json.Decoder[Value], data: bytes, path: Path) -> Path | None:
    """The same with the keys of maps: each is looked for by decoding the values of its map one without the others."""
    while _SOME_KEY in path:
        upto = path.index(_SOME_KEY)
        held = _FIELDS.decode(_at(data, path[:upto]))
        for key, value in held.items():
            try:
                decoder.decode(_with(data, path[:upto], Raw(msgspec.json.encode({key: value}))))
            except msgspec.ValidationError as error:
                told = _path(error)
                if told[: upto + 1] == path[: upto + 1]:
                    path = [*told[:upto], key, *told[upto + 1 :]]
                    break
        else:
            return None
    return path


def _name(path: Path) -> str:
    return "".join([f".{step}" if isinstance(step, str) else "[]" for step in path]).lstrip(".")


def _at(data: bytes | Raw, path: Path) -> bytes:
    for step in path:
        data = _ELEMENTS.decode(data)[step] if isinstance(step, int) else _FIELDS.decode(data)[step]
    return bytes(data)


def _with(data: bytes | Raw, path: Path, value: Raw | None) -> Raw:
    """The document with another value there, or without any; all else in it is what it was, byte for byte."""
    if not path:
        return Raw(data) if value is None else value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        elements = _ELEMENTS.decode(data)
        inner = _with(elements[step], rest, value) if rest else value
        elements[step : step + 1] = [] if inner is None else [inner]
        return Raw(msgspec.json.encode(elements))
    fields = _FIELDS.decode(data)
    inner = _with(fields[step], rest, value) if rest else value
    if inner is None:
        fields.pop(step, None)
    else:
        fields[step] = inner
    return Raw(msgspec.json.encode(fields))
