"""What can be read once only, kept so that it can be read again: little in memory, more in files of ours."""

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final, cast

LITTLE: Final = 64 * 1024
"""Bytes up to which something stays in memory: making a file for it takes longer than reading it."""
MEMORY: Final = 64 * 1024**2
"""Bytes of all that stays there; what comes later goes into files."""


class Copies:
    """Copies for as long as the directory lasts.

    Args:
        scratch: a directory of the caller's.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._numbers = count()
        self._room = MEMORY

    def keep(self, blocks: Iterator[bytes]) -> tuple[int, Callable[[], BinaryIO]]:
        """A copy of all blocks: its size, and what opens it from its beginning, which can be pickled.

        Whatever ``blocks`` raises comes through, and nothing is kept.
        """
        begun: list[bytes] = []
        size = 0
        for block in blocks:
            begun.append(block)
            size += len(block)
            if size > min(LITTLE, self._room):
                return self._filed(begun, size, blocks)
        self._room -= size
        return size, cast("Callable[[], BinaryIO]", partial(BytesIO, b"".join(begun)))

    def _filed(self, begun: list[bytes], size: int, rest: Iterator[bytes]) -> tuple[int, Callable[[], BinaryIO]]:
        path = self._scratch / str(next(self._numbers))
        try:
            with path.open("wb") as target:
                target.writelines(begun)
                for block in rest:
                    target.write(block)
                    size += len(block)
        except BaseException:
            path.unlink()
            raise
        return size, cast("Callable[[], BinaryIO]", partial(path.open, "rb"))
