"""The SQLite file of keys, tenants, audit and limits' use: opened alike by every worker and command on one machine."""

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

from headway.core.errors import BadInputError, StoreError

_APPLICATION_ID: Final = 0x48445741  # "HDWA"
_SCHEMA_VERSION: Final = 1
REGISTRY_SCHEMA: Final = """
CREATE TABLE tenant (id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE key (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE secret (digest TEXT PRIMARY KEY, key TEXT NOT NULL, until DOUBLE PRECISION);
CREATE TABLE audit (
    number {number}, at DOUBLE PRECISION NOT NULL, action TEXT NOT NULL, tenant TEXT NOT NULL, body TEXT NOT NULL
);
CREATE TABLE version (number BIGINT NOT NULL);
INSERT INTO version VALUES (0);
"""
"""Of keys, tenants and audit: the same in SQLite and PostgreSQL, but for how rows are numbered."""
_COUNTERS: Final = """
CREATE TABLE total (
    counter TEXT PRIMARY KEY, used INTEGER NOT NULL, since REAL NOT NULL, touched REAL NOT NULL,
    warned INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE slot (
    counter TEXT NOT NULL, at INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (counter, at)
) WITHOUT ROWID;
CREATE TABLE holder (id TEXT PRIMARY KEY, number INTEGER NOT NULL, settled INTEGER NOT NULL, seen REAL NOT NULL);
CREATE TABLE holding (
    counter TEXT NOT NULL, holder TEXT NOT NULL, held INTEGER NOT NULL, PRIMARY KEY (counter, holder)
) WITHOUT ROWID;
CREATE INDEX holding_by_holder ON holding (holder);
"""


def default_access_file() -> Path:
    """Where keys and limits are kept unless told otherwise: the user's data directory."""
    return user_data_path("headway") / "access.db"


class AccessFile:
    """One connection to the file (write-ahead log), for threads that take turns.

    A commit is in the file's log when it returns, so it outlives the process, however that is ended; power that fails
    may take the last commits with it, never the file's order.

    Args:
        path: the file; created, with its directory, readable by its owner only.
        patience: seconds to wait for another process that is writing.

    Raises:
        BadInputError: the file is damaged, not ours, or written by a newer Headway.
        StoreError: it cannot be opened: a missing right, a full disk.
    """

    def __init__(self, path: Path, *, patience: float = 5.0) -> None:
        self.path = path
        self._lock = threading.Lock()
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Only a file that is not there: to close it once would drop the locks of this process's other connections,
            # and the next process to leave would take the log away under them.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        with self._lock:
            self._db.close()

    @contextmanager
    def changing(self) -> Generator[sqlite3.Connection]:
        """A transaction that nobody else writes beside: all of it is done, or nothing.

        Raises:
            StoreError: the disk is full, the file is locked for longer than our patience, or may not be written.
        """
        with self._lock, self._explained(), self._transaction():
            yield self._db

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """The file as it stands.

        Raises:
            StoreError: it cannot be read.
        """
        with self._lock, self._explained():
            yield self._db

    def _prepare(self) -> None:
        version, owner = self._pragma("user_version"), self._pragma("application_id")
        if owner != _APPLICATION_ID and (version or self._db.execute("SELECT 1 FROM sqlite_schema").fetchone()):
            raise BadInputError(f"{self.path} is a SQLite file, but holds no keys of ours.", fix=_OTHER)
        if version > _SCHEMA_VERSION:
            raise BadInputError(
                f"{self.path} has schema version {version}; this Headway reads up to {_SCHEMA_VERSION}.",
                fix="Use the newer Headway that wrote it, or name another file.",
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            if not self._pragma("user_version"):
                for statement in (REGISTRY_SCHEMA.format(number="INTEGER PRIMARY KEY AUTOINCREMENT") + _COUNTERS).split(
                    ";"
                ):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _pragma(self, name: str) -> int:
        return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._db.execute("BEGIN IMMEDIATE")
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
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.OperationalError, sqlite3.ProgrammingError, OSError) as error:
            raise StoreError(f"The file of keys and limits {self.path} cannot be used: {error}.", fix=_FIX) from error
        except sqlite3.DatabaseError as error:
            raise BadInputError(f"{self.path} holds no keys of ours, or is damaged: {error}.", fix=_OTHER) from error


_OTHER: Final = "Move the file away, or name another."
_FIX: Final = "Free disk space, and check that the file and its directory may be read and written."
