"""The store: every span that was recorded, in one SQLite file that many may read while others write."""

import logging
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Self

import msgspec

from headway.core.errors import AmbiguousError, BadInputError, NotFoundError, StoreError
from headway.core.span import Span
from headway.core.task import TaskId
from headway.trace.task_row import TaskRow, of_tenant, summed_up

_log = logging.getLogger(__name__)

_APPLICATION_ID = 0x48445759  # "HDWY"
_SCHEMA_VERSION = 2
_PAGE_BYTES = 8192
"""Of a new file. In SQLite's own 4096, spans of about 1 kB leave more of each page empty and cost more to write."""
_SCHEMA = f"""
CREATE TABLE span (
    task TEXT NOT NULL, id TEXT NOT NULL, start REAL NOT NULL, body BLOB NOT NULL, PRIMARY KEY (task, id)
);
CREATE INDEX span_by_start ON span (start, task);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SCHEMA_VERSION};
"""
"""Each further column would cost a write about 3 %; what it would hold is quickly read off the bodies of one task."""
_LEAVE_1 = "ALTER TABLE span RENAME TO span_1; DROP INDEX span_by_start;"
_TAKE_OVER_1 = "INSERT INTO span SELECT task, id, start, body FROM span_1; DROP TABLE span_1;"
"""Version 1 had eight more columns; a reader does not mind them."""
_ROW = "(?,?,?,?)"
_ROWS_PER_STATEMENT = 64
"""SQLite works without the interpreter's lock, so a statement of many rows leaves the gateway's thread free; one
statement per row would hand the lock to and fro."""
_CANDIDATES = 8
_LATELY = 1_000
"""Tasks among which one is looked for that was not refused."""
_OF_TENANTS = 5_000
"""Tasks that are looked at to find a tenant's: no tenant's wish takes longer, however many tasks others have."""
_OURS_OR = "Move the file away, or name another with --store."


class Store:
    """Spans in a SQLite file (write-ahead log); safe to share between threads, whose calls then take turns.

    Args:
        path: the file; created, with its directory, readable by its owner only.
        readonly: never create or change anything.
        max_bytes: bound on the spans' size; beyond it the oldest eighth of the spans goes, with all spans of the
            tasks they belong to. The file's freed pages are used again, so it stays near this size.
        patience: seconds to wait for another process that is writing.

    Raises:
        NotFoundError: ``readonly``, and there is no store yet.
        BadInputError: the file is damaged, not a store of ours, or written by a newer Headway.
        StoreError: it cannot be opened: a missing right, a full disk.
    """

    def __init__(self, path: Path, *, readonly: bool = False, max_bytes: int = 1024**3, patience: float = 5.0) -> None:
        self.path = path
        self.lost = 0
        """Spans written here and gone with the file, when somebody removed or replaced it."""
        self._written = 0
        """Spans written to the file as it is."""
        self._file: tuple[int, int] | None = None
        """Which file is open; ``None`` while there is none."""
        self._readonly = readonly
        self._patience = patience
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Span)
        if readonly and not path.exists():
            raise nothing_recorded(path)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self._lock:
            self._db.close()

    def write(self, spans: Sequence[Span]) -> None:
        """Write all of ``spans``, or none. A span whose task and id are there already takes the old one's place.

        Raises:
            StoreError: the disk is full, the file is locked for longer than our patience, or may not be written.
            ValueError: a value that cannot be encoded, such as a lone surrogate in a name.
            OverflowError: a number beyond 64 bits.
        """
        encode = self._encoder.encode
        rows = ((span.task, span.id, span.start, encode(span)) for span in spans)
        with self._lock, self._explained():
            if not self._readonly:
                self._follow_file()
            with self._transaction("IMMEDIATE"):
                while chunk := list(islice(rows, _ROWS_PER_STATEMENT)):
                    self._db.execute(_insert(len(chunk)), list(chain.from_iterable(chunk)))
            self._written += len(spans)
            self._make_room()

    def spans(self, task: TaskId) -> tuple[Span, ...]:
        """All spans of ``task`` in order of their start; none when it is not there."""
        with self._lock, self._explained():
            rows = self._db.execute("SELECT body FROM span WHERE task = ? ORDER BY start, id", (task,)).fetchall()
        try:
            return tuple(self._decoder.decode(body) for (body,) in rows)
        except msgspec.MsgspecError as error:
            raise self._unreadable(task, error) from error

    def beginning(self, beginning: str) -> tuple[Span, ...]:
        """The first few spans, of whichever tasks, whose own id begins so."""
        with self._lock, self._explained():
            rows = self._db.execute(
                "SELECT body FROM span WHERE id >= ?1 AND id < ?1 || char(0x10ffff) LIMIT ?2", (beginning, _CANDIDATES)
            ).fetchall()
        return tuple(self._decoder.decode(body) for (body,) in rows)

    def tasks(
        self, limit: int = 20, *, errors: bool = False, model: str | None = None, tenant: str | None = None
    ) -> tuple[TaskRow, ...]:
        """The tasks that were active last, newest first.

        Args:
            limit: how many at most.
            errors: only tasks in which a span failed.
            model: only tasks that called this model.
            tenant: only what bears this tenant's name, among the newest `_OF_TENANTS` tasks of all.
        """
        found: list[TaskRow] = []
        with self._lock, self._explained(), self._transaction("DEFERRED"):
            for task in islice(self._newest(), None if tenant is None else _OF_TENANTS):
                if len(found) >= limit:
                    break
                row = self._summary(task, tenant)
                if row is not None and (row.errors or not errors) and (model is None or model in row.models):
                    found.append(row)
        return tuple(found)

    def row(self, task: TaskId) -> TaskRow:
        """One task at a glance.

        Raises:
            NotFoundError: it is not there.
        """
        with self._lock, self._explained():
            found = self._summary(task)
        if found is None:
            raise NotFoundError(f"There is no task {task!r} in {self.path}.")
        return found

    def last(self) -> TaskId | None:
        """The task that was active last, of those in which an engine was reached, if there was one lately."""
        with self._lock, self._explained():
            newest = list(islice(self._newest(), _LATELY))
            reached = (task for task in newest if (row := self._summary(task)) is None or not row.refused)
            return next(reached, newest[0] if newest else None)

    def neighbours(self, tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
        """Before and after each of ``tasks`` the next task by id: of all others, those share the longest beginning."""
        with self._lock, self._explained():
            found = {
                TaskId(near)
                for task in tasks
                for near in self._db.execute(
                    "SELECT (SELECT max(task) FROM span WHERE task < ?1), (SELECT min(task) FROM span WHERE task > ?1)",
                    (task,),
                ).fetchone()
                if near is not None
            }
        return tuple(found)

    def resolve(self, prefix: str) -> TaskId:
        """The task named ``prefix``, or the only one whose id begins with it.

        Raises:
            AmbiguousError: several tasks begin with it; they are listed.
            NotFoundError: none does; the nearest are listed.
        """
        with self._lock, self._explained():
            found = [
                TaskId(task)
                for (task,) in self._db.execute(
                    "SELECT DISTINCT task FROM span WHERE task >= ? AND task < ? || char(0x10ffff) ORDER BY 1 LIMIT ?",
                    (prefix, prefix, _CANDIDATES + 1),
                )
            ]
            recent = [] if found else list(islice(self._newest(), 500))
        if found and (len(found) == 1 or found[0] == prefix):
            return found[0]
        if found:
            shown, more = tuple(found[:_CANDIDATES]), len(found) > _CANDIDATES
            raise AmbiguousError(
                f"Several tasks begin with {prefix!r}: {_listed(shown)}{' …' if more else ''}.",
                fix="Give more of the id.",
                candidates=shown,
                more=more,
            )
        if not recent:
            raise nothing_recorded(self.path)
        near = get_close_matches(prefix, recent, n=3, cutoff=0.5) or recent[:3]
        raise NotFoundError(
            f"There is no task {prefix!r} in {self.path}. The nearest: {_listed(near)}.",
            fix="See them all with `headway tasks`.",
        )

    def size(self) -> int:
        """Bytes that the spans and their indexes take, without the freed pages that the file still holds."""
        with self._lock, self._explained():
            return self._size()

    def _open(self) -> None:
        with self._explained():
            if not self._readonly:
                _create_private(self.path)
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self._explained():
                self._prepare()
                self._file = _file(self.path)
        except BaseException:
            self._db.close()
            raise

    def _follow_file(self) -> None:
        """If the file was removed or replaced, write to what is there now: the old one is out of everybody's reach."""
        found = _file(self.path)
        if found is not None and found == self._file:
            return
        if self._file is not None:
            _log.error("%s was removed or replaced; spans gone with it: %d", self.path, self._written)
            self.lost += self._written
            self._written, self._file = 0, None
            self._db.close()
        self._open()

    def _prepare(self) -> None:
        self._refuse_others()
        if self._readonly:
            if not self._user_version():
                raise nothing_recorded(self.path)
            self._db.execute("PRAGMA query_only = ON")
            return
        self._db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        if self._pragma("journal_mode") != "wal":
            self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA temp_store = MEMORY")  # where SQLite notes how to undo a statement of many rows
        self._db.execute(f"PRAGMA journal_size_limit = {64 * 1024**2}")
        with self._transaction("IMMEDIATE"):
            match self._user_version():
                case 0:
                    self._run(_SCHEMA)
                case 1:
                    self._run(_LEAVE_1 + _SCHEMA + _TAKE_OVER_1)
                case _:
                    pass

    def _run(self, statements: str) -> None:
        for statement in statements.split(";"):
            self._db.execute(statement)

    def _refuse_others(self) -> None:
        version, owner = self._user_version(), self._pragma("application_id")
        if owner != _APPLICATION_ID and (version or self._db.execute("SELECT 1 FROM sqlite_schema").fetchone()):
            raise BadInputError(f"{self.path} is a SQLite file, but not a store of spans.", fix=_OURS_OR)
        if version > _SCHEMA_VERSION:
            raise BadInputError(
                f"{self.path} has schema version {version}; this Headway reads up to {_SCHEMA_VERSION}.",
                fix="Use the newer Headway that wrote it, or name another file with --store.",
            )

    def _pragma(self, name: str) -> str | int:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _user_version(self) -> int:
        return int(self._pragma("user_version"))

    def _newest(self) -> Iterator[TaskId]:
        seen: set[TaskId] = set()
        for (task,) in self._db.execute("SELECT task FROM span ORDER BY start DESC, task DESC"):
            if task not in seen:
                seen.add(task)
                yield task

    def _summary(self, task: TaskId, tenant: str | None = None) -> TaskRow | None:
        bodies = [body for (body,) in self._db.execute("SELECT body FROM span WHERE task = ?", (task,))]
        try:
            if tenant is not None:
                bodies = of_tenant(bodies, tenant)
            return summed_up(task, bodies) if bodies else None
        except msgspec.MsgspecError as error:
            raise self._unreadable(task, error) from error

    def _unreadable(self, task: TaskId, error: Exception) -> BadInputError:
        return BadInputError(f"{self.path} holds a span of task {task} that cannot be read: {error}.")

    def _size(self) -> int:
        used = int(self._pragma("page_count")) - int(self._pragma("freelist_count"))
        return used * int(self._pragma("page_size"))

    def _make_room(self) -> None:
        if self._size() <= self._max_bytes:
            return
        with self._transaction("IMMEDIATE"):
            self._db.execute(
                # The newest row stays, so that its number, which followers go by, is not given out again.
                """DELETE FROM span WHERE rowid < (SELECT max(rowid) FROM span) AND task IN (
                SELECT task FROM span WHERE start <= (
                SELECT start FROM span ORDER BY start LIMIT 1 OFFSET (SELECT COUNT(*) FROM span) / 8))"""
            )

    @contextmanager
    def _transaction(self, mode: str) -> Generator[None]:
        self._db.execute(f"BEGIN {mode}")
        try:
            yield
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError, OSError) as error:
            raise StoreError(f"The store {self.path} cannot be used: {error}.", fix=_reason(error)) from error
        except sqlite3.DatabaseError as error:
            raise BadInputError(
                f"{self.path} is not a store of spans, or is damaged: {error}.", fix=_OURS_OR
            ) from error


def nothing_recorded(path: Path) -> NotFoundError:
    """The error of a store without spans, or of none at all, with what to do."""
    return NotFoundError(
        f"Nothing is recorded yet in {path}.",
        fix="Start the gateway with `headway serve` and point an agent's base URL at it.",
    )


@cache
def _insert(rows: int) -> str:
    return f"INSERT OR REPLACE INTO span VALUES {','.join([_ROW] * rows)}"  # noqa: S608 - question marks only


def _create_private(path: Path) -> None:
    """Only a file that is not there: to close it once would drop the locks of this process's other connections."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def _file(path: Path) -> tuple[int, int] | None:
    """Which file lies at ``path``, whatever its name: ``None`` where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _listed(tasks: Sequence[str]) -> str:
    return ", ".join(map(repr, tasks))  # an id may come from a caller: nothing in it may steer a terminal


def _reason(error: Exception) -> str:
    match getattr(error, "sqlite_errorname", "") or "":
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return "Another process is writing to it; try again."
        case "SQLITE_FULL":
            return "Free some disk space."
        case _:
            return "Check that the file and its directory may be read and written, or name another with --store."
