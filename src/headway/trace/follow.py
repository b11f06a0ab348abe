"""Following a store: the spans that are written to it, in the order of their writing, each at least once.

The place that a follower has come to is kept in the store's own file, so that it is there after a restart, lasts as
long as the spans do, and goes with them when the file is removed or replaced. Nobody who writes spans waits for a
follower, but for the milliseconds that writing its place takes.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct

from headway.core.errors import StoreError
from headway.core.span import Span
from headway.core.task import TaskId

Place = int
"""How far a follower has come: numbers grow with each write; one that is written again gets a new one."""
TASK_SPANS: Final = 20_000
"""Of one task that are read at once: some 20 MB."""
_TABLE: Final = "CREATE TABLE IF NOT EXISTS follower (name TEXT PRIMARY KEY, place INTEGER NOT NULL)"


class Stretch(Struct, frozen=True):
    """Spans that follow one another."""

    spans: tuple[Span, ...]
    place: Place
    """Where the next stretch begins."""
    unreadable: int = 0
    """Rows that hold no span that this Headway can read; passed over."""


class Follower:
    """One who reads a store after those who write it.

    Args:
        path: the store's file, which is there.
        name: under which the place is kept; ``None``: it is not.
        patience: seconds to wait for another process that is writing.

    Raises:
        StoreError: the file cannot be used.
    """

    def __init__(self, path: Path, name: str | None = None, *, patience: float = 5.0) -> None:
        self.path = path
        self._name = name
        self._decoder = msgspec.msgpack.Decoder(Span)
        with self._explained():
            mode = "ro" if name is None else "rw"
            uri = f"{path.absolute().as_uri()}?mode={mode}"
            self._db = sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA synchronous = NORMAL")
            found = path.stat()
            self._file = (found.st_dev, found.st_ino)
        try:
            with self._explained():
                if name is not None:
                    self._db.execute(_TABLE)
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def gone(self) -> bool:
        """Whether the file was removed or replaced since, so that what is written now is elsewhere."""
        try:
            found = self.path.stat()
        except OSError:
            return True
        return (found.st_dev, found.st_ino) != self._file

    def place(self) -> Place | None:
        """Where it was the last time; ``None``: never anywhere."""
        with self._explained():
            row = self._db.execute("SELECT place FROM follower WHERE name = ?", (self._name,)).fetchone()
        return None if row is None else row[0]

    def keep(self, place: Place) -> None:
        """Remember ``place``: all before it is done with."""
        with self._explained():
            self._db.execute("INSERT OR REPLACE INTO follower VALUES (?, ?)", (self._name, place))

    def end(self) -> Place:
        """The place after all that is written now."""
        with self._explained():
            return self._db.execute("SELECT coalesce(max(rowid), 0) FROM span").fetchone()[0]

    def begin(self) -> Place:
        """The place before all that is still there."""
        with self._explained():  # in one statement: between two of them the first span of all may be written
            return self._db.execute("SELECT coalesce(min(rowid) - 1, 0) FROM span").fetchone()[0]

    def after(self, place: Place, most: int, most_bytes: int = 1 << 23) -> Stretch:
        """The spans after ``place``.

        Args:
            place: of the stretch before.
            most: spans at most.
            most_bytes: of their rows, but for the last one, however large that is.
        """
        spans: list[Span] = []
        unreadable = size = 0
        query = "SELECT rowid, body FROM span WHERE rowid > ? ORDER BY rowid LIMIT ?"
        with self._explained(), closing(self._db.execute(query, (place, most))) as rows:
            for row, body in rows:
                place = row
                try:
                    spans.append(self._decoder.decode(body))
                except msgspec.MsgspecError:
                    unreadable += 1
                size += len(body)
                if size >= most_bytes:
                    break
        return Stretch(tuple(spans), place, unreadable)

    def task(self, task: TaskId, most: int = TASK_SPANS) -> tuple[Span, ...]:
        """The spans of one task that can be read, by start; the first ``most`` of them."""
        query = "SELECT body FROM span WHERE task = ? ORDER BY start, id LIMIT ?"
        spans: list[Span] = []
        with self._explained():
            bodies = self._db.execute(query, (task, most)).fetchall()
        for (body,) in bodies:
            with suppress(msgspec.MsgspecError):
                spans.append(self._decoder.decode(body))
        return tuple(spans)

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"The store {self.path} cannot be followed: {error}.",
                fix="Check that the file may be read and written.",
            ) from error
