"""Paid calls written down, so that a task whose process is killed neither pays twice nor loses what it paid for.

What comes in one turn of the event loop, or while a commit is made, shares a commit. A commit survives the process; in
SQLite's write-ahead log the last few may be lost when the machine loses power.
"""

import asyncio
import sqlite3
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from headway.core.errors import BadInputError, HeadwayError, StoreError
from headway.core.task import TaskId
from headway.runtime.memo import Row

_VERSION: Final = 1
_PATIENCE_MS: Final = 5_000
"""How long to wait for another process that is writing."""
_CHECKPOINT: Final = 1000
"""Commits after which what is in the write-ahead log is moved to the file, which waits for the disk."""
Entry = tuple[TaskId, str, bytes]
"""A row's task, key and body."""


class Table(Protocol):
    """Where rows are."""

    def read(self, task: TaskId) -> list[bytes]:
        """All rows of a task; called on a thread.

        Raises:
            StoreError: it cannot be read.
        """
        ...

    def write(self, rows: Sequence[Entry], *, wait: bool) -> bool:
        """Write all rows or none; one that is there is replaced.

        Args:
            rows: task, key and body of each.
            wait: ``False``: on the event loop's thread, so only what takes well below a millisecond; else on another.

        Returns:
            Whether they are written; never ``False`` with ``wait``.

        Raises:
            StoreError: they cannot be written.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class GroupedLedger:
    """A `headway.runtime.Ledger` in a table. An async context manager; of one event loop.

    Args:
        table: where; closed with it.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._waiting: list[tuple[Entry, asyncio.Future[None]]] = []
        self._writing = False
        self._closed = False
        self._thread = ThreadPoolExecutor(1, "headway-ledger")
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Row).decode

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what waits, and close the table."""
        self._closed = True
        await asyncio.gather(*(done for _, done in self._waiting), return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
        self._table.close()

    async def rows(self, task: TaskId) -> list[Row]:
        """All that is known of a task's calls.

        Raises:
            StoreError: it cannot be read now.
        """
        bodies = await asyncio.get_running_loop().run_in_executor(self._thread, self._table.read, task)
        return [self._decode(body) for body in bodies]

    async def write(self, task: TaskId, row: Row) -> None:
        """Keep a row in place of what had its key; when this returns, killing the process no longer undoes it.

        Raises:
            StoreError: it cannot be written now, or the ledger is closed.
        """
        if self._closed:
            raise StoreError("The ledger is closed.", fix="Leave it open until its tasks have ended.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(((task, row.key, self._encode(row)), done))
        if not self._writing:
            self._writing = True
            loop.call_soon(self._commit, loop)
        await done

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        group, self._waiting = self._waiting, []
        rows = [entry for entry, _ in group]
        try:
            written = self._table.write(rows, wait=False)
        except Exception as error:  # noqa: BLE001 - those who wait must hear of it, whatever it is
            self._committed(loop, group, error)
            return
        if written:
            self._committed(loop, group, None)
            return
        write = partial(self._table.write, rows, wait=True)
        waiting = loop.run_in_executor(self._thread, write)
        waiting.add_done_callback(lambda done: self._committed(loop, group, done.exception()))

    def _committed(
        self,
        loop: asyncio.AbstractEventLoop,
        group: list[tuple[Entry, asyncio.Future[None]]],
        error: BaseException | None,
    ) -> None:
        if error is not None and not isinstance(error, HeadwayError):
            error = StoreError(f"The ledger cannot be written: {error}")
        for _, done in group:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
        self._writing = bool(self._waiting)
        if self._writing:
            loop.call_soon(self._commit, loop)


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
        self._commits = 0
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._db = sqlite3.connect(path, timeout=_PATIENCE_MS / 1000, isolation_level=None, check_same_thread=False)
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
        self._db.execute("PRAGMA wal_autocheckpoint = 0")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS paid (task TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (task, key))"
            " WITHOUT ROWID"
        )
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def read(self, task: TaskId) -> list[bytes]:
        """All rows of a task."""
        with self._explained():
            return [body for (body,) in self._db.execute("SELECT body FROM paid WHERE task = ? ORDER BY key", (task,))]

    def write(self, rows: Sequence[Entry], *, wait: bool) -> bool:
        """Write all rows or none; without ``wait``, only if no other process writes and the disk is not waited for."""
        self._commits += not wait
        if not wait and self._commits % _CHECKPOINT == 0:
            return False
        with self._explained():
            self._db.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS if wait else 0}")
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if not wait and error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                    return False
                raise
            try:
                self._db.executemany("INSERT OR REPLACE INTO paid VALUES (?, ?, ?)", rows)
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            if wait:
                self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return True

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
