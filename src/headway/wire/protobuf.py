"""The protobuf wire format, as far as messages without groups need it: bytes to numbered fields."""

from collections.abc import Iterator
from typing import Final

from headway.core.errors import BadInputError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST: Final = 10
"""Bytes of a varint: 64 bits, seven to a byte."""

Value = int | bytes
"""A varint as a number; all else as its bytes, little-endian."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Numbers and values of a message's fields in order.

    Raises:
        BadInputError: the bytes are no message.
    """
    at, size = 0, len(data)
    while at < size:
        number, value, at = field(data, at)
        yield number, value


def field(data: bytes, at: int) -> tuple[int, Value, int]:
    """The field that begins at ``at``: number, value, and where it ends.

    Raises:
        BadInputError: none begins there.
    """
    tag, start = varint(data, at)
    kind = tag & 7
    if not tag >> 3:
        raise broken(at)
    if kind == _BYTES:
        length, start = varint(data, start)
    elif kind == _VARINT:
        value, end = varint(data, start)
        return tag >> 3, value, end
    elif kind == _FIXED64:
        length = 8
    elif kind == _FIXED32:
        length = 4
    else:
        raise broken(at)
    end = start + length
    if end > len(data):
        raise broken(at)
    return tag >> 3, data[start:end], end


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at ``at``, and where it ends.

    Raises:
        BadInputError: there is none.
    """
    try:
        number = data[at]
    except IndexError:
        raise broken(at) from None
    if number < 1 << 7:
        return number, at + 1
    number = shift = 0
    for byte in data[at : at + _LONGEST]:
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise broken(at)


def broken(at: int) -> BadInputError:
    """What to raise for bytes that are no message."""
    return BadInputError(f"This is not protobuf: byte {at:,} begins no field.", fix="Send OTLP as protobuf or JSON.")
