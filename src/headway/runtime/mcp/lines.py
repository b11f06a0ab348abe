"""What a server writes, cut into lines, none of which may grow beyond a limit; of those that do, whose they are."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.errors import UpstreamError

_ENDS: Final = 4096
"""Bytes that are kept of a line's two ends: enough to tell by its id whose answer it is."""
_MEMBERS: Final = re.compile(rb'"(?:result|error|params)"\s*:')
_ID: Final = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")')
_LAST_ID: Final = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_METHOD: Final = b'"method"'


class Overlong(Struct, frozen=True):
    """A line that was longer than the limit, and was thrown away."""

    size: int
    answers: int | str | None
    """The request that it was the answer to; ``None``: it was no answer, or does not say."""
    is_answer: bool
    """Whether somebody waits for it."""


class Lines:
    """Bytes in, whole lines out.

    Args:
        most: bytes that a line may have; of a longer one only the ends are kept.
        flood: bytes of one line after which its end is waited for no longer.
    """

    def __init__(self, most: int, flood: int) -> None:
        self._most = most
        self._flood = flood
        self._line = bytearray()
        self._head = b""
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | Overlong]:
        """The lines that end in ``data``, without their ends; empty ones are left out.

        Raises:
            UpstreamError: a line goes on for ever.
        """
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._take(piece)
            yield from self._end()
        self._take(rest)

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        self._line += piece
        if self._size <= self._most:
            return
        if self._size > self._flood:
            raise UpstreamError(f"It wrote more than {self._flood:,} bytes without an end.")
        self._head = self._head or bytes(self._line[:_ENDS])
        del self._line[:-_ENDS]

    def _end(self) -> Iterator[bytes | Overlong]:
        line, head, size = bytes(self._line), self._head, self._size
        self._line.clear()
        self._head, self._size = b"", 0
        if size > self._most:
            yield _overlong(head, line, size)
        elif line.strip():
            yield line


def _overlong(head: bytes, tail: bytes, size: int) -> Overlong:
    """Writers of JSON put the id first or last; a result may have ids of its own, but not before it begins."""
    member = _MEMBERS.search(head)
    before = head[: member.start()] if member else head
    if _METHOD in before:
        return Overlong(size, None, is_answer=False)
    found = _ID.search(before) or _LAST_ID.search(tail)
    return Overlong(size, msgspec.json.decode(found[1], type=int | str) if found else None, is_answer=True)
