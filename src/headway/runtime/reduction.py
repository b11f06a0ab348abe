"""The order of a reduction: each merge as soon as its parts are there, no level waits for the one before."""

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from headway.core.errors import BadInputError

R = TypeVar("R")


class Tree(Iterator[list[R]], Generic[R]):
    """The merges of a reduction: which parts make up which whole, so that each starts as soon as its parts are there.

    The shape depends on how many values there are and on ``fan_in`` alone. A part that is alone is its own whole.
    """

    def __init__(self, values: list[R], fan_in: int) -> None:
        if fan_in < 2:  # noqa: PLR2004 - merging one into one never ends
            raise BadInputError(f"fan_in={fan_in} merges nothing.", fix="Merge 2 or more at a time.")
        if not values:
            raise BadInputError("There is nothing to reduce.", fix="Give at least one item.")
        self._fan_in = fan_in
        self._levels: list[dict[int, R]] = []
        self._widths: list[int] = []
        width = len(values)
        while True:
            self._levels.append({})
            self._widths.append(width)
            if width == 1:
                break
            width = -(-width // fan_in)
        self._ready: deque[tuple[int, int, list[R]]] = deque()
        self._taken: list[tuple[int, int]] = []
        for at, value in enumerate(values):
            self._put(0, at, value)

    def __next__(self) -> list[R]:
        """The next merge whose parts are all there; it may be at its end and later have more."""
        if not self._ready:
            raise StopIteration
        level, at, values = self._ready.popleft()
        self._taken.append((level, at))
        return values

    def place(self, index: int) -> str:
        """Where in the tree the merge is that was taken as the ``index``-th: the same in each run."""
        level, at = self._taken[index]
        return f"{level}.{at}"

    def merged(self, index: int, value: R) -> None:
        """What the merge gave that was taken as the ``index``-th."""
        self._put(*self._taken[index], value)

    @property
    def merges(self) -> int:
        """How many merges there are in all."""
        return sum(
            sum(1 for group in range(wide) if min(self._fan_in, below - group * self._fan_in) > 1)
            for below, wide in zip(self._widths, self._widths[1:], strict=False)
        )

    def _put(self, level: int, at: int, value: R) -> None:
        self._levels[level][at] = value
        if level + 1 == len(self._widths):
            return
        group = at // self._fan_in
        members = range(group * self._fan_in, min((group + 1) * self._fan_in, self._widths[level]))
        if all(member in self._levels[level] for member in members):
            values = [self._levels[level].pop(member) for member in members]
            if len(values) == 1:
                self._put(level + 1, group, values[0])
            else:
                self._ready.append((level + 1, group, values))

    @property
    def root(self) -> R:
        """What all came to."""
        return self._levels[-1][0]
