"""Notices when an agent gets nowhere: when all that its turn did was done before, and came to the same."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

Progress = Literal[
    "new",  # something of the turn is new
    "repeated",  # nothing of it is
    "stuck",  # as in the turns before it, and that is enough
]


class Standstill:
    """The calls of one agent so far, with their results.

    An agent that edits and tests, and edits and tests again, may see the same failure many times: it is its edits that
    are new. So it is turns that count, and only those in a row of which nothing is new.

    Args:
        turns: in a row that bring nothing new are enough.
    """

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._seen: set[bytes] = set()
        self._idle = 0

    def turn(self, calls: Iterable[tuple[str, str, str]]) -> Progress:
        """A turn has ended: each of its calls by tool, arguments and result."""
        made = {blake2b("\0".join(call).encode(errors="replace"), digest_size=16).digest() for call in calls}
        self._idle = self._idle + 1 if made <= self._seen else 0
        self._seen |= made
        if self._idle >= self._turns:
            return "stuck"
        return "repeated" if self._idle else "new"
