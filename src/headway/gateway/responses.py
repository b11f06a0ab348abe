"""What the gateway itself says over HTTP: response heads, and failures in the shape that OpenAI clients expect."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from headway.core.errors import HeadwayError
from headway.core.span import ErrorType

Headers = list[tuple[bytes, bytes]]
"""Names are lower-case; order and repeats are kept."""

HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
    }
)
"""Headers about one connection or its framing (RFC 9110, 7.6.1), which each side of the gateway sets for itself."""

JSON: Final[Headers] = [(b"content-type", b"application/json")]
TEXT: Final[Headers] = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"

_PLAIN_CONNECTION: Final = frozenset({b"keep-alive", b"Keep-Alive", b"close", b"Close"})
_STATUS_LINES: Final = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


class Failure(Struct, frozen=True, kw_only=True):
    """Why a request got no good answer; the caller's dialect words it."""

    error: ErrorType
    """The word under which spans and metrics know it."""
    status: int
    message: str
    """What, where and what to do; goes to the client, so it never holds a secret."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Beside those that every failure has."""


def failure(error: str, status: int, cause: HeadwayError | str, *headers: tuple[bytes, bytes]) -> Failure:
    """A failure named ``error`` with a message, or with that of what caused it."""
    return Failure(error=ErrorType(error), status=status, message=str(cause), headers=headers)


def head(status: int, headers: Iterable[tuple[bytes, bytes]], framing: bytes) -> bytes:
    """A response head; ``framing`` is the lines about length and connection, each with its line end."""
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return line + b"".join([name + b": " + value + b"\r\n" for name, value in headers]) + framing + b"\r\n"


def connection_bound(fields: dict[bytes, bytes], dropped: frozenset[bytes] = HOP_BY_HOP) -> frozenset[bytes]:
    """Names of the headers that are not passed on: ``dropped``, and those that the Connection header names."""
    named = fields.get(b"connection")
    if named is None or named in _PLAIN_CONNECTION:
        return dropped
    return dropped | {token.strip().lower() for token in named.split(b",")}
