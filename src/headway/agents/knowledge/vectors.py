"""A cache of vectors on disk, so that a document is embedded once and not at every start."""

import hashlib
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path

from headway.agents.knowledge.embed import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

KEPT: Final = 100_000
"""Vectors kept, the newest ones: about 150 MB of 384 numbers each."""

SCHEMA: Final = "CREATE TABLE IF NOT EXISTS vector (age INTEGER PRIMARY KEY, key BLOB UNIQUE, row BLOB NOT NULL)"


def default_vectors() -> Path:
    """Where vectors are kept unless told otherwise: the user's cache directory."""
    return user_cache_path("headway") / "vectors.db"


class CachedEmbedder:
    """An embedder that remembers passages, by a hash of the model's name and the text; the text is not stored.

    Trouble with the file never stops the work: vectors are then computed anew, and ``trouble`` says why.
    """

    def __init__(self, inner: Embedder, path: Path) -> None:
        self._inner = inner
        self._path = path
        self.name = inner.name
        self.trouble = ""

    async def passages(self, texts: Sequence[str]) -> "Matrix":
        """Vectors from the file where it has them, else from the embedder; new ones are put into the file."""
        import numpy as np  # noqa: PLC0415 - an optional package

        keys = [hashlib.sha256(f"{self.name}\0{text}".encode("utf-8", "replace")).digest() for text in texts]
        known = self._load(keys)
        absent = [at for at, key in enumerate(keys) if key not in known]
        if absent:
            rows = await self._inner.passages([texts[at] for at in absent])
            fresh = {keys[at]: row.tobytes() for at, row in zip(absent, rows, strict=True)}
            self._save(fresh)
            known |= fresh
        return np.stack([np.frombuffer(known[key], dtype=np.float32) for key in keys])

    async def query(self, text: str) -> "Matrix":
        """Questions are not kept: they seldom come back."""
        return await self._inner.query(text)

    def _load(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        try:
            with _open(self._path) as db:
                found = (db.execute("SELECT key, row FROM vector WHERE key = ?", (key,)).fetchone() for key in keys)
                return dict(row for row in found if row)
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"{self._path}: {error}"
            return {}

    def _save(self, rows: dict[bytes, bytes]) -> None:
        try:
            with _open(self._path) as db:
                db.executemany("INSERT OR IGNORE INTO vector (key, row) VALUES (?, ?)", rows.items())
                db.execute("DELETE FROM vector WHERE age <= (SELECT max(age) FROM vector) - ?", (KEPT,))
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"{self._path}: {error}"


@contextmanager
def _open(path: Path) -> Generator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=5.0)) as db, db:
        db.execute(SCHEMA)
        yield db
