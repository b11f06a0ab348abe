"""Paid calls written down, so that a task whose process is killed neither pays twice nor loses what it paid for.

What comes while one commit is made goes into the next, so many calls at once share a commit. A commit survives the
process, not the machine's loss of power in SQLite's write-ahead log, where the last few may be lost.
"""

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError, HeadwayError, StoreError
from headway.core.task import TaskId
from headway.runtime.memo import Row

_VERSION: Final = 1
_PATIENCE: Final = 5.0
"""Seconds to wait for another process that is writing."""
_MOST_ROWS: Final = 512
"""In one commit."""


class Table(Protocol):
    """Where rows are; used from one thread at a time."""

    def read(self, task: TaskId) -> list[bytes]:
        """All rows of a task.

        Raises:
            StoreError: it cannot be read.
        """
        ...

    def write(self, rows: Sequence[tuple[TaskId, str, bytes]]) -> None:
        """Write all rows (task, key, body) or none; one that is there is replaced.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class GroupedLedger:
    """A `headway.runtime.Ledger` in a table, written by a thread of its own. An async context manager.

    Args:
        table: where; closed with it.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._waiting: deque[_Written] = deque()
        self._wake = threading.Event()
        self._closed = False
        self._lock = threading.Lock()
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Row).decode
        self._thread = threading.Thread(target=self._work, name="headway-ledger", daemon=True)
        self._thread.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what waits, and close the table."""
        self._closed = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)
        self._table.close()

    async def rows(self, task: TaskId) -> list[Row]:
        """All that is known of a task's calls.

        Raises:
            StoreError: it cannot be read now.
        """
        return [self._decode(body) for body in await asyncio.to_thread(self._read, task)]

    async def write(self, task: TaskId, row: Row) -> None:
        """Keep a row in place of what had its key; when this returns, killing the process no longer undoes it.

        Raises:
            StoreError: it cannot be written now, or the ledger is closed.
        """
        if self._closed:
            raise StoreError("The ledger is closed.", fix="Leave it open until its tasks have ended.")
        loop = asyncio.get_running_loop()
        written = _Written((task, row.key, self._encode(row)), loop, loop.create_future())
        self._waiting.append(written)
        self._wake.set()
        await written.done

    def _read(self, task: TaskId) -> list[bytes]:
        with self._lock:
            return self._table.read(task)

    def _work(self) -> None:
        while not self._closed or self._waiting:
            self._wake.wait()
            self._wake.clear()
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_ROWS))]
                error: Exception | None = None
                try:
                    with self._lock:
                        self._table.write([written.row for written in group])
                except HeadwayError as caught:
                    error = caught
                except Exception as caught:  # noqa: BLE001 - those who wait must hear of it, whatever it is
                    error = StoreError(f"The ledger cannot be written: {caught}")
                _tell(group, error)


class _Written(Struct, frozen=True):
    row: tuple[TaskId, str, bytes]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]


def _tell(group: list[_Written], error: Exception | None) -> None:
    def tell(done: list[asyncio.Future[None]]) -> None:
        for future in done:
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

    for loop in {written.loop for written in group}:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, [written.done for written in group if written.loop is loop])


class SqliteTable:
    """Rows in a file, which several processes may share.

    Args:
        path: the file; made, with its directory, readable by its owner only.

    Raises:
        BadInputError: the file is none of ours, or of a newer Headway.
        StoreError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                self._prepare()
        except HeadwayError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version not in (0, _VERSION) or (version == 0 and tables):
            raise BadInputError(f"{self._path} is no ledger of this Headway.", fix="Name another file.")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS paid (task TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (task, key))"
            " WITHOUT ROWID"
        )
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def read(self, task: TaskId) -> list[bytes]:
        """All rows of a task."""
        with self._explained():
            return [body for (body,) in self._db.execute("SELECT body FROM paid WHERE task = ? ORDER BY key", (task,))]

    def write(self, rows: Sequence[tuple[TaskId, str, bytes]]) -> None:
        """Write all rows or none."""
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR REPLACE INTO paid VALUES (?, ?, ?)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(f"The ledger {self._path} cannot be used: {error}.", fix="Look at the disk.") from error
        except OSError as error:
            raise StoreError(f"The ledger {self._path} cannot be made: {error}.", fix="Name another file.") from error
