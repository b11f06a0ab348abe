"""The store: every span that was recorded, in one SQLite file that many may read while others write."""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct

from headway.core.errors import AmbiguousError, BadInputError, NotFoundError, StoreError
from headway.core.span import ModelCall, Span
from headway.core.task import SessionId, TaskId

_APPLICATION_ID = 0x48445759  # "HDWY"
_SCHEMA_VERSION = 1
_PAGE_BYTES = 8192
"""Of a new file. In SQLite's own 4096, spans of about 1 kB leave more of each page empty and cost more to write."""
_SCHEMA = f"""
CREATE TABLE span (
    task TEXT NOT NULL, id TEXT NOT NULL, parent TEXT, session TEXT, kind TEXT NOT NULL, name TEXT NOT NULL,
    start REAL NOT NULL, "end" REAL, error TEXT, model TEXT, tokens INTEGER, body BLOB NOT NULL,
    PRIMARY KEY (task, id)
);
CREATE INDEX span_by_start ON span (start, task);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SCHEMA_VERSION};
"""
_ROW = "(?,?,?,?,?,?,?,?,?,?,?,?)"
_ROWS_PER_STATEMENT = 64
"""SQLite works without the interpreter's lock, so a statement of many rows leaves the gateway's thread free; one
statement per row would hand the lock to and fro."""
_CANDIDATES = 8
_OURS_OR = "Move the file away, or name another with --store."


class TaskRow(Struct, frozen=True, kw_only=True):
    """One task at a glance. Times are epoch seconds."""

    task: TaskId
    session: SessionId | None
    started_at: float
    """Start of its first span that is not a person's waiting: that lies before the task."""
    ended_at: float | None
    """End of the span that ended last; unknown while none has."""
    spans: int
    calls: int
    errors: int
    """Spans that ended in an error."""
    tokens: int | None
    """Input and output of all calls; unknown when any call's is."""
    models: tuple[str, ...]


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
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Span)
        if readonly and not path.exists():
            raise nothing_recorded(path)
        with self._explained():
            if not readonly:
                _create_private(path)
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=patience,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            with self._explained():
                self._prepare(readonly=readonly)
        except BaseException:
            self._db.close()
            raise

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
        rows = (self._row(span) for span in spans)
        with self._lock, self._explained():
            with self._transaction("IMMEDIATE"):
                while chunk := list(islice(rows, _ROWS_PER_STATEMENT)):
                    self._db.execute(_insert(len(chunk)), [value for row in chunk for value in row])
            self._make_room()

    def spans(self, task: TaskId) -> tuple[Span, ...]:
        """All spans of ``task`` in order of their start; none when it is not there."""
        with self._lock, self._explained():
            rows = self._db.execute("SELECT body FROM span WHERE task = ? ORDER BY start, id", (task,)).fetchall()
        try:
            return tuple(self._decoder.decode(body) for (body,) in rows)
        except msgspec.MsgspecError as error:
            raise BadInputError(f"{self.path} holds a span of task {task} that cannot be read: {error}.") from error

    def tasks(self, limit: int = 20, *, errors: bool = False, model: str | None = None) -> tuple[TaskRow, ...]:
        """The tasks that were active last, newest first.

        Args:
            limit: how many at most.
            errors: only tasks in which a span failed.
            model: only tasks that called this model.
        """
        found: list[TaskRow] = []
        with self._lock, self._explained(), self._transaction("DEFERRED"):
            for task in self._newest():
                if len(found) >= limit:
                    break
                row = self._summary(task)
                if (row.errors or not errors) and (model is None or model in row.models):
                    found.append(row)
        return tuple(found)

    def row(self, task: TaskId) -> TaskRow:
        """One task at a glance.

        Raises:
            NotFoundError: it is not there.
        """
        with self._lock, self._explained():
            found = self._summary(task)
        if not found.spans:
            raise NotFoundError(f"There is no task {task!r} in {self.path}.")
        return found

    def last(self) -> TaskId | None:
        """The task that was active last: the first of `tasks`."""
        with self._lock, self._explained():
            return next(self._newest(), None)

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

    def _prepare(self, *, readonly: bool) -> None:
        self._refuse_others()
        if readonly:
            if not self._user_version():
                raise nothing_recorded(self.path)
            self._db.execute("PRAGMA query_only = ON")
            return
        self._db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        if self._pragma("journal_mode") != "wal":
            self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(f"PRAGMA journal_size_limit = {64 * 1024**2}")
        with self._transaction("IMMEDIATE"):
            if not self._user_version():
                for statement in _SCHEMA.split(";"):
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

    def _row(self, span: Span) -> tuple[Any, ...]:
        model, tokens = None, None
        if isinstance(span.work, ModelCall):
            model, usage = span.work.model, span.work.usage
            if usage.input_tokens is not None and usage.output_tokens is not None:
                tokens = usage.input_tokens + usage.output_tokens
        kind = span.work.__struct_config__.tag
        body = self._encoder.encode(span)
        key = (span.task, span.id, span.parent, span.session, kind, span.name)
        return (*key, span.start, span.end, span.error, model, tokens, body)

    def _newest(self) -> Iterator[TaskId]:
        seen: set[TaskId] = set()
        for (task,) in self._db.execute("SELECT task FROM span ORDER BY start DESC, task DESC"):
            if task not in seen:
                seen.add(task)
                yield task

    def _summary(self, task: TaskId) -> TaskRow:
        session, start, end, spans, calls, errors, counted, tokens, models = self._db.execute(
            """SELECT MAX(session), COALESCE(MIN(start) FILTER (WHERE kind <> 'human'), MIN(start)), MAX("end"),
            COUNT(*), COUNT(model), COUNT(error), COUNT(tokens), SUM(tokens),
            json_group_array(DISTINCT model) FILTER (WHERE model IS NOT NULL) FROM span WHERE task = ?""",
            (task,),
        ).fetchone()
        return TaskRow(
            task=task,
            session=session,
            started_at=start,
            ended_at=end,
            spans=spans,
            calls=calls,
            errors=errors,
            tokens=tokens if counted == calls else None,
            models=tuple(sorted(msgspec.json.decode(models, type=list[str]))),
        )

    def _size(self) -> int:
        used = int(self._pragma("page_count")) - int(self._pragma("freelist_count"))
        return used * int(self._pragma("page_size"))

    def _make_room(self) -> None:
        if self._size() <= self._max_bytes:
            return
        with self._transaction("IMMEDIATE"):
            self._db.execute(
                """DELETE FROM span WHERE task IN (SELECT task FROM span WHERE start <= (
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
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))


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
