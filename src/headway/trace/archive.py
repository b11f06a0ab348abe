"""An archive: a set of tasks in one file, each with its row at hand and its spans packed up behind it."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final, Self

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError, NotFoundError, StoreError
from headway.trace.facts import TaskFacts
from headway.trace.filed import Row, repriced
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.digests import digest
from headway.trace.sources.verdict import Verdict

_APPLICATION_ID: Final = 0x48445741  # "HDWA"
_SCHEMA_VERSION: Final = 1
_PAGE_BYTES: Final = 16384
_SCHEMA: Final = f"""
CREATE TABLE task (
    number INTEGER PRIMARY KEY, task TEXT NOT NULL UNIQUE, session TEXT, source TEXT NOT NULL, title TEXT,
    started_at REAL NOT NULL, made_by TEXT NOT NULL, verdict BLOB NOT NULL, facts BLOB NOT NULL
);
CREATE TABLE spans (number INTEGER PRIMARY KEY REFERENCES task, packed BLOB NOT NULL);
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SCHEMA_VERSION};
"""
_MAGIC: Final = b"SQLite format 3\0"
_OWNER_AT: Final = 68
"""Where SQLite's file format keeps the application's id."""
_ANOTHER: Final = "Name another file, or move this one away."


class Shelved(Struct, frozen=True, kw_only=True):
    """One task of an archive that is open."""

    facts: TaskFacts
    verdict: Verdict
    archive: "Archive"
    number: int

    @property
    def packed(self) -> bytes:
        """Its spans, fetched now."""
        return self.archive.packed(self.number)


class _Verdicts(dict[bytes, Verdict]):
    """Verdicts by how they are written down. Most tasks of a set share theirs with others: each is made once."""

    def __missing__(self, written: bytes) -> Verdict:
        made = self[written] = msgspec.msgpack.decode(written, type=Verdict)
        return made


class Archive:
    """Tasks in an SQLite file of their own. Of several processes one at a time writes, and others read what was before.

    Args:
        path: the file.
        readonly: never create or change anything; else it is created, with its directory, for its owner only.
        patience: seconds to wait for another process that is writing.

    Raises:
        NotFoundError: ``readonly``, and there is no such file.
        BadInputError: the file is damaged, no archive, or written by a newer Headway.
        StoreError: it cannot be opened: a missing right, another's lock.
    """

    def __init__(self, path: Path, *, readonly: bool = False, patience: float = 5.0) -> None:
        self.path = path
        self._readonly = readonly
        if readonly and not path.exists():
            raise NotFoundError(f"There is no {path}.", fix="Make one with `headway import FILES --into FILE`.")
        with self._explained():
            if not readonly:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                with suppress(FileExistsError):  # to close it once would drop the locks of other connections to it
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            mode = "ro" if readonly else "rw"
            self._db = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=patience, isolation_level=None
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
        if not self._readonly:
            with suppress(sqlite3.OperationalError):  # somebody reads it: then the log stays beside it until the next
                self._db.execute("PRAGMA journal_mode = DELETE")
        self._db.close()

    def __len__(self) -> int:
        """How many tasks there are."""
        with self._explained():
            return int(self._db.execute("SELECT COUNT(*) FROM task").fetchone()[0])

    def add(self, rows: Iterable[Row], prices: PriceOf = price_for) -> int:
        """Put tasks in, all or none; one that is there already is replaced. Returns how many they were.

        Args:
            rows: the tasks.
            prices: what their rows were worked out with.

        Raises:
            StoreError: the disk is full, or another process writes for longer than our patience.
        """
        made_by, count = maker(prices), 0
        with self._transaction():
            for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is what was counted
                with self._explained():
                    self._put(row, made_by)
        return count

    def rows(self, prices: PriceOf = price_for) -> Iterator[Row]:
        """Every task in the order in which they were put in.

        A row that was worked out otherwise, by other prices or another Headway, is worked out again from its spans.
        """
        made_by = maker(prices)
        facts, verdicts = msgspec.msgpack.Decoder(TaskFacts), _Verdicts()
        with self._explained():
            found = self._db.execute("SELECT number, made_by, verdict, facts FROM task ORDER BY number")
            for number, by, verdict, row in found:
                judged = verdicts[verdict]
                if by == made_by:
                    yield Shelved(facts=facts.decode(row), verdict=judged, archive=self, number=number)
                else:
                    yield repriced(self.packed(number), judged, self._title(number), prices)

    def packed(self, number: int) -> bytes:
        """The packed spans of a task by its number."""
        with self._explained():
            found = self._db.execute("SELECT packed FROM spans WHERE number = ?", (number,)).fetchone()
        if found is None:
            raise self._damaged(f"task {number} has no spans")
        return bytes(found[0])

    def _title(self, number: int) -> str | None:
        return self._db.execute("SELECT title FROM task WHERE number = ?", (number,)).fetchone()[0]

    def _put(self, row: Row, made_by: str) -> None:
        facts = row.facts
        encode = msgspec.msgpack.encode
        key = (facts.task, facts.session, facts.source, facts.title, facts.started_at, made_by)
        (number,) = self._db.execute(
            """INSERT INTO task (task, session, source, title, started_at, made_by, verdict, facts)
            VALUES (?,?,?,?,?,?,?,?) ON CONFLICT (task) DO UPDATE SET session = excluded.session,
            source = excluded.source, title = excluded.title, started_at = excluded.started_at,
            made_by = excluded.made_by, verdict = excluded.verdict, facts = excluded.facts RETURNING number""",
            (*key, encode(row.verdict), encode(facts)),
        ).fetchone()
        self._db.execute("INSERT OR REPLACE INTO spans VALUES (?,?)", (number, row.packed))

    def _prepare(self, *, readonly: bool) -> None:
        owner, known = self._pragma("application_id"), self._pragma("user_version")
        empty = self._db.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
        if owner != _APPLICATION_ID and (readonly or known or not empty):
            raise BadInputError(f"{self.path} is a SQLite file, but no archive of tasks.", fix=_ANOTHER)
        if known > _SCHEMA_VERSION:
            raise BadInputError(
                f"{self.path} has schema version {known}; this Headway reads up to {_SCHEMA_VERSION}.",
                fix="Use the newer Headway that wrote it, or import anew.",
            )
        if readonly:
            return
        self._db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        with self._transaction():
            if not self._pragma("user_version"):
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
        self._db.execute("PRAGMA journal_mode = WAL")  # while it is written, others read what was before

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._explained():
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    @contextmanager
    def _explained(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise StoreError(f"The archive {self.path} cannot be used: {error}.", fix=_reason(error)) from error
        except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, how: str) -> BadInputError:
        return BadInputError(f"{self.path} is no archive of tasks, or is damaged: {how}.", fix=_ANOTHER)


def is_archive(path: Path) -> bool:
    """Whether a file begins as an archive does, whatever its name and however sound the rest of it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_OWNER_AT + 4)
    return head.startswith(_MAGIC) and head[_OWNER_AT:] == _APPLICATION_ID.to_bytes(4, "big")


def maker(prices: PriceOf) -> str:
    """What a row depends on besides its spans: this Headway, the form of its rows, and prices."""
    own = "" if prices is price_for else repr(prices)
    return digest(version("headway"), version("genai-prices"), _form(), own)


@cache
def _form() -> str:
    return digest(msgspec.json.encode(msgspec.json.schema(TaskFacts), order="deterministic").decode())


def _reason(error: Exception) -> str:
    match getattr(error, "sqlite_errorname", "") or "":
        case "SQLITE_BUSY" | "SQLITE_LOCKED":
            return "Another process is writing to it; try again."
        case "SQLITE_FULL":
            return "Free some disk space."
        case _:
            return "Check that the file and its directory may be read and written."
