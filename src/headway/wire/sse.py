"""Server-sent events: from a stream of bytes to the data of each event, wherever the bytes were cut."""

import re
from itertools import pairwise
from typing import Final

from headway.core.errors import UpstreamError

_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
"""An event ends where two line ends meet; atomic, so that one CRLF is never read as two."""
_FIELD: Final = re.compile(rb"[A-Za-z][\w-]*(?::|$)|:|$")
"""How a line of an event stream may start: a field, a comment, or nothing at all."""
_LF: Final = 10
_CR: Final = 13
_LONGEST_CUT: Final = 3
"""A blank line that is not yet recognised can hold at most the last three bytes (CR LF CR)."""


class EventScanner:
    """Cuts a byte stream into whole events, as the WHATWG's event-stream grammar says.

    Args:
        max_bytes: largest event that is held while it is incomplete.
    """

    __slots__ = ("_max_bytes", "_tail")

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._tail = bytearray()

    @property
    def tail(self) -> bytes:
        """What has come of the event that is not complete yet."""
        return bytes(self._tail)

    def cut(self, chunk: bytes) -> bytes:
        """The bytes of all events that ``chunk`` completes, untouched; what follows them is held.

        All that was returned, then ``tail``, is always exactly what was put in.

        Raises:
            UpstreamError: the incomplete event is longer than ``max_bytes``.
        """
        tail = self._tail
        if not tail:
            if chunk.endswith(b"\n\n"):
                return chunk
            end = _last_blank_line(chunk, 0)
            whole, rest = chunk[:end], chunk[end:]
            tail += rest
        else:
            start = max(0, len(tail) - _LONGEST_CUT)
            tail += chunk
            end = _last_blank_line(tail, start)
            whole = bytes(tail[:end])
            del tail[:end]
        if len(tail) > self._max_bytes:
            raise UpstreamError(
                f"The engine sent {len(tail)} bytes of one event without ending it; the limit is {self._max_bytes}.",
                fix="Check that the upstream URL streams server-sent events.",
            )
        return whole

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that ``chunk`` completes.

        Raises:
            UpstreamError: as `cut` and `events`.
        """
        return events(self.cut(chunk))


def events(whole: bytes) -> list[bytes]:
    """The data of each of these whole events; the lines of one event are joined by LF.

    Comments and other fields (``event``, ``id``, ``retry``) are skipped: the OpenAI wire uses ``data`` alone.

    Raises:
        UpstreamError: a line is no field at all, so this is something else than an event stream.
    """
    if whole.startswith(b"data: ") and whole.endswith(b"\n\n"):
        data = whole[6:-2]
        if _LF not in data and _CR not in data:  # one event in one line: looked for as numbers, which is a bare memchr
            return [data]
    found: list[bytes] = []
    lines: list[bytes] = []
    for line in whole.splitlines():
        if line[:5] == b"data:":
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and lines:
            found.append(lines[0] if len(lines) == 1 else b"\n".join(lines))
            lines = []
        elif line == b"data":
            lines.append(b"")
        elif not _FIELD.match(line):
            raise UpstreamError(
                f"The engine's event stream has a line that is no field, {len(line)} bytes long.",
                fix="Check that the upstream URL is an OpenAI-compatible /v1 endpoint and not a web page.",
            )
    return found


def split(whole: bytes) -> list[bytes]:
    """These whole events one by one, each with the blank line that ends it; joined, they are ``whole`` again."""
    ends = [match.end() for match in _BLANK_LINE.finditer(whole)]
    return [whole[start:end] for start, end in pairwise([0, *ends, len(whole)])]


def _last_blank_line(data: bytes | bytearray, start: int) -> int:
    """Where the last complete event ends; 0 when none is complete."""
    if data.endswith(b"\n\n"):
        return len(data)
    end = 0
    for match in _BLANK_LINE.finditer(data, start):
        end = match.end()
    return end
