"""OTLP as protobuf, written: spans to the messages that `headway.wire.otlp_protobuf` reads.

By hand for the same reason as the reading: no version of protobuf is forced on anybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Final, cast

from headway.wire.otel import RawEvent, RawSpan
from headway.wire.otlp import KINDS
from headway.wire.otlp_writer import nanoseconds

_VARINT, _FIXED64, _BYTES = 0, 1, 2
"""Wire types."""
_ONE_BYTE: Final = 128
"""Numbers below take one byte."""
_UINT64: Final = Struct("<Q")
_DOUBLE: Final = Struct("<d")
_MAX_UINT64: Final = 0xFFFF_FFFF_FFFF_FFFF
_OK, _FAILED = 1, 2
"""Codes of a span's status."""


def to_protobuf(spans: Sequence[RawSpan]) -> bytes:
    """One message that holds the spans; neighbours of one resource and scope share a group.

    Raises:
        ValueError: an id is not hex, a text holds half a character, or a time is no number of nanoseconds in 64 bits.
    """
    groups: list[tuple[Mapping[str, object], str, list[bytes]]] = []
    for span in spans:
        if not groups or groups[-1][:2] != (span.resource, span.scope):
            groups.append((span.resource, span.scope, []))
        groups[-1][2].append(_span(span))
    return b"".join([_message(1, _group(*group)) for group in groups])


def _group(resource: Mapping[str, object], scope: str, spans: list[bytes]) -> bytes:
    held = _message(1, _message(1, scope.encode())) + b"".join([_message(2, span) for span in spans])
    return _message(1, _attributes(1, resource)) + _message(2, held)


def _span(span: RawSpan) -> bytes:
    pieces = [
        _message(1, bytes.fromhex(span.trace)),
        _message(2, bytes.fromhex(span.id)),
        b"" if span.parent is None else _message(4, bytes.fromhex(span.parent)),
        _message(5, span.name.encode()),
        _number(6, KINDS.index(span.kind)),
        _time(7, span.start),
        b"" if span.end is None else _time(8, span.end),
        _attributes(9, span.attributes),
        *[_message(11, _event(event)) for event in span.events],
        b"" if span.failed is None else _message(15, _number(3, _FAILED if span.failed else _OK)),
    ]
    return b"".join(pieces)


def _event(event: RawEvent) -> bytes:
    return _time(1, event.time or 0.0) + _message(2, event.name.encode()) + _attributes(3, event.attributes)


def _attributes(field: int, plain: Mapping[str, object]) -> bytes:
    return b"".join([_message(field, _pair(name, value)) for name, value in plain.items()])


def _pair(name: str, value: object) -> bytes:
    return _message(1, name.encode()) + _message(2, _any_value(value))


def _any_value(plain: object) -> bytes:
    match plain:
        case None:
            written = b""
        case bool():
            written = _number(2, int(plain))
        case int():
            written = _number(3, plain)
        case float():
            written = bytes([4 << 3 | _FIXED64]) + _DOUBLE.pack(plain)
        case list():
            written = _message(5, _values(cast("list[object]", plain)))
        case dict():
            written = _message(6, _attributes(1, cast("dict[str, object]", plain)))
        case _:
            written = _message(1, str(plain).encode())
    return written


def _values(plain: Iterable[object]) -> bytes:
    return b"".join([_message(1, _any_value(one)) for one in plain])


def _message(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | _BYTES]) + _varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3 | _VARINT]) + _varint(value & _MAX_UINT64)


def _time(field: int, when: float) -> bytes:
    told = int(nanoseconds(when))
    if not 0 <= told <= _MAX_UINT64:
        raise ValueError(f"the time {when} s cannot be told in nanoseconds since the epoch")
    return bytes([field << 3 | _FIXED64]) + _UINT64.pack(told)


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= _ONE_BYTE:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
