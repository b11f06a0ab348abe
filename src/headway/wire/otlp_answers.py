"""What a receiver of OTLP over HTTP says: all was taken, some was not, nothing was. In the encoding it was asked in."""

from typing import Literal

import msgspec

from headway.wire.protobuf import fields

Encoding = Literal["protobuf", "json"]


def taken(encoding: Encoding, rejected: int, why: str) -> bytes:
    """An ``ExportTraceServiceResponse``.

    Args:
        encoding: of the request.
        rejected: spans that could not be used; the rest were taken.
        why: of those.
    """
    if encoding == "json":
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return msgspec.json.encode(partial if rejected else {})
    if not rejected:
        return b""
    return _length_delimited(1, b"\x08" + _varint(rejected) + _length_delimited(2, why.encode()))


def refused(encoding: Encoding, message: str) -> bytes:
    """A ``google.rpc.Status``."""
    return msgspec.json.encode({"message": message}) if encoding == "json" else _length_delimited(2, message.encode())


def rejected_in(answer: bytes) -> int:
    """How many spans an ``ExportTraceServiceResponse`` in protobuf says were not taken.

    Raises:
        BadInputError: it is none.
    """
    partial = dict(fields(answer)).get(1, b"")
    told = dict(fields(partial)).get(1, 0) if isinstance(partial, bytes) else 0
    return told if isinstance(told, int) else 0


def _length_delimited(field: int, data: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 1 << 7:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
