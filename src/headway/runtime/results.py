"""Results of tools that may be given again: bounded in bytes and in time; what was used longest ago goes first."""

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError

_OVERHEAD: Final = 512
"""Bytes that an entry takes beside its text."""


class ResultCache:
    """Texts by key, in memory. Of one event loop; several runtimes may share one.

    Who may be given what is in the keys: a tool's results are those of a task, or of a tenant where the tool says so.

    Args:
        most_bytes: of all of them; what is larger by itself is not kept.

    Raises:
        BadInputError: ``most_bytes`` is negative.
    """

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        if most_bytes < 0:
            raise BadInputError(f"most_bytes={most_bytes} is no size.", fix="Give a number of bytes; 0 keeps nothing.")
        self._most = most_bytes
        self._kept: OrderedDict[Hashable, _Entry] = OrderedDict()
        self.bytes = 0
        """What is kept now."""

    def find(self, key: Hashable, now: float) -> str | None:
        """What is kept under a key and still fresh ``now``."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        if entry.until is not None and now >= entry.until:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return entry.text

    def keep(self, key: Hashable, text: str, until: float | None) -> None:
        """Keep a text in place of what had its key, until a time as `find` has it; ``None``: without end."""
        self._drop(key)
        entry = _Entry(text, until, sys.getsizeof(text) + _OVERHEAD)
        if entry.size > self._most:
            return
        self._kept[key] = entry
        self.bytes += entry.size
        while self.bytes > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        entry = self._kept.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size


class _Entry(Struct, frozen=True):
    text: str
    until: float | None
    size: int
