"""An index on disk: documents, their passages, vectors and terms, in one SQLite file."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.documents import Problem
from headway.agents.knowledge.retrieval.terms import terms
from headway.core.errors import BadInputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

MARK: Final = 0x48574B49
"""``application_id`` of our files: HWKI."""
VERSION: Final = 1
PATIENCE: Final = 30.0
"""Seconds to wait for another process that writes."""

SCHEMA: Final = f"""
CREATE TABLE document (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, digest BLOB NOT NULL, what TEXT NOT NULL,
    fix TEXT NOT NULL, readable INTEGER NOT NULL);
CREATE TABLE chunk (id INTEGER PRIMARY KEY, document INTEGER NOT NULL, ordinal INTEGER NOT NULL, title TEXT NOT NULL,
    place TEXT NOT NULL, text TEXT NOT NULL, key BLOB NOT NULL);
CREATE INDEX chunk_document ON chunk (document);
CREATE INDEX chunk_key ON chunk (key);
CREATE TABLE vector (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE term USING fts5 (terms, tokenize = 'unicode61 remove_diacritics 0');
CREATE VIRTUAL TABLE frequency USING fts5vocab (term, 'row');
PRAGMA application_id = {MARK};
PRAGMA user_version = {VERSION};
"""
TABLES: Final = ("frequency", "term", "vector", "chunk", "document")


class Entry(Struct, frozen=True, kw_only=True):
    """What the file holds of one document."""

    digest: bytes
    """Of its bytes and of how they were read and embedded."""
    problem: Problem | None
    """What could not be read of it."""
    readable: bool = True
    """Whether it gave any text."""


class IndexFile:
    """One index; several processes may use it at once. Close it, for example by ``with``.

    A document is written whole or not at all, so whoever is killed in the middle has lost nothing but his turn.

    Args:
        path: the file, which is made with its folder; ``None``: in memory.

    Raises:
        BadInputError: the file is something else.
        StoreError: it cannot be opened or written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        with self._told():
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)
            self._db = sqlite3.connect(":memory:" if path is None else path, timeout=PATIENCE, isolation_level=None)
        try:
            with self._told():
                self._prepare()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; twice does no harm."""
        self._db.close()

    def entries(self) -> dict[str, Entry]:
        """All documents by name, those that gave no text too."""
        with self._told():
            rows = self._db.execute("SELECT name, digest, what, fix, readable FROM document").fetchall()
        return {
            name: Entry(
                digest=digest, problem=Problem(name=name, what=what, fix=fix) if what else None, readable=bool(readable)
            )
            for name, digest, what, fix, readable in rows
        }

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of ``keys`` whose vectors are here."""
        with self._told():
            return {key for key in keys if self._db.execute("SELECT 1 FROM vector WHERE key = ?", (key,)).fetchone()}

    def put(
        self, name: str, entry: Entry, chunks: Sequence[Chunk], keys: Sequence[bytes], rows: Mapping[bytes, bytes]
    ) -> None:
        """Write a document in place of what was there under its name.

        Args:
            name: the document's.
            entry: what else is known of it.
            chunks: its passages, in order.
            keys: their vectors' keys.
            rows: vectors that are new, as 32-bit floats.
        """
        problem = entry.problem
        with self._writing():
            self._drop(name)
            what, fix = (problem.what, problem.fix) if problem else ("", "")
            document = self._db.execute(
                "INSERT INTO document (name, digest, what, fix, readable) VALUES (?, ?, ?, ?, ?)",
                (name, entry.digest, what, fix, entry.readable),
            ).lastrowid
            self._db.executemany("INSERT OR IGNORE INTO vector (key, row) VALUES (?, ?)", rows.items())
            for ordinal, (part, key) in enumerate(zip(chunks, keys, strict=True)):
                row = self._db.execute(
                    "INSERT INTO chunk (document, ordinal, title, place, text, key) VALUES (?, ?, ?, ?, ?, ?)",
                    (document, ordinal, part.title, part.place, part.text, key),
                ).lastrowid
                words = " ".join(terms(part.for_embedding()))
                self._db.execute("INSERT INTO term (rowid, terms) VALUES (?, ?)", (row, words))
            if self.known(keys) != set(keys):  # another process has let vectors go meanwhile
                raise StoreError(f"The index {self.path} was changed by another process.", fix="Start this again.")

    def remove(self, names: Iterable[str]) -> None:
        """Let documents go, and vectors that no document has any more."""
        with self._writing():
            for name in names:
                self._drop(name)
            self._db.execute("DELETE FROM vector WHERE key NOT IN (SELECT key FROM chunk)")

    def load(self) -> tuple[list[int], list[Chunk], "Matrix"]:
        """Ids, passages and vectors, ordered by document and place: what is the same whatever came first."""
        import numpy as np  # noqa: PLC0415 - an optional package

        with self._told():
            rows = self._db.execute(
                "SELECT chunk.id, document.name, chunk.title, chunk.place, chunk.text, vector.row FROM chunk "
                "JOIN document ON document.id = chunk.document JOIN vector ON vector.key = chunk.key "
                "ORDER BY document.name, chunk.ordinal"
            ).fetchall()
        ids = [row[0] for row in rows]
        chunks = [Chunk(document=name, title=title, place=place, text=text) for _, name, title, place, text, _ in rows]
        if not rows:
            return ids, chunks, np.empty((0, 0), dtype=np.float32)
        return ids, chunks, np.frombuffer(b"".join(row[5] for row in rows), dtype=np.float32).reshape(len(rows), -1)

    def matching(self, wanted: Sequence[str], most: int) -> list[int]:
        """Ids of the passages that have any of the terms, by BM25 (k1 = 1.2, b = 0.75), best first."""
        if not wanted:
            return []
        asked = " OR ".join(f'"{term}"' for term in wanted)
        with self._told():
            found = self._db.execute(
                "SELECT rowid FROM term WHERE term MATCH ? ORDER BY bm25(term), rowid LIMIT ?", (asked, most)
            )
            return [row[0] for row in found]

    def frequency(self, term: str) -> int:
        """Passages that have the term."""
        with self._told():
            row = self._db.execute("SELECT doc FROM frequency WHERE term = ?", (term,)).fetchone()
        return row[0] if row else 0

    def _prepare(self) -> None:
        made, mark, version = self._stamp()
        if made and mark != MARK:
            raise BadInputError(f"{self.path} is a database, and no index of documents.", fix="Name another file.")
        if made and version == VERSION:
            return
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._writing():
            made, _, version = self._stamp()
            if made and version == VERSION:  # another process was first
                return
            for table in TABLES:  # those of another version: all of it can be made anew from the documents
                self._db.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in filter(str.strip, SCHEMA.split(";")):
                self._db.execute(statement)

    def _stamp(self) -> tuple[bool, int, int]:
        """Whether anything is in it, whose file it is and of which version."""
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        return tables > 0, mark, version

    def _drop(self, name: str) -> None:
        whose = "SELECT chunk.id FROM chunk JOIN document ON document.id = chunk.document WHERE document.name = ?"
        self._db.execute(f"DELETE FROM term WHERE rowid IN ({whose})", (name,))  # noqa: S608 - a constant
        self._db.execute(f"DELETE FROM chunk WHERE id IN ({whose})", (name,))  # noqa: S608 - as above
        self._db.execute("DELETE FROM document WHERE name = ?", (name,))

    @contextmanager
    def _writing(self) -> "Generator[None]":
        with self._told():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _told(self) -> "Generator[None]":
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StoreError(
                    f"The index {self.path} cannot be used: {error}.", fix="Name another file with --index."
                ) from error
            raise BadInputError(f"{self.path} is no index of documents: {error}.", fix="Name another file.") from error
        except OSError as error:
            raise StoreError(
                f"The index {self.path} cannot be used: {error.strerror}.", fix="Name another file with --index."
            ) from error
