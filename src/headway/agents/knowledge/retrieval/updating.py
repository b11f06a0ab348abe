"""Bringing an index up to date with its documents: what has changed is read and embedded again, and nothing else."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from headway.agents.knowledge.chunks import BUDGET, Chunk, chunk
from headway.agents.knowledge.documents import READERS, Document, File, Problem, find_files, named
from headway.agents.knowledge.embed import BATCH, Embedder
from headway.agents.knowledge.retrieval.index_file import Entry, IndexFile
from headway.core.errors import BadInputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

READING: Final = f"1|{BUDGET}"
"""How documents are read and cut; raise the first number when that changes, so that they are read again."""


class Update(Struct, frozen=True, kw_only=True):
    """What was done to an index. Names of documents, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    embedded: int = 0
    """Passages whose vectors were computed; the others' were there."""
    problems: tuple[Problem, ...] = ()
    """Of all documents, also of those that have not changed."""


class _Work(Struct, frozen=True, kw_only=True):
    name: str
    entry: Entry
    chunks: tuple[Chunk, ...]
    keys: tuple[bytes, ...]


async def update(
    file: IndexFile,
    paths: Sequence[Path],
    embedder: Embedder,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Update:
    """Make ``file`` the index of the documents at ``paths``.

    A document is known by the hash of its bytes: one that has not changed is not read again, one that is gone leaves.
    Passages that stand in a changed document as they did before keep their vectors.

    Args:
        file: the index.
        paths: files and folders.
        embedder: its cost dominates: the bundled model takes about a quarter of a second per passage on two busy cores.
        on_progress: told after each batch how many passages are embedded, and of how many.

    Raises:
        NotFoundError: there is nothing at one of ``paths``.
        BadInputError: no document gave any text; the message carries the first few reasons. Nothing was changed.
        MissingExtraError: the packages that read documents are not installed.
        UpstreamError: the embedder failed; what it had done is kept.
    """
    before = file.entries()
    works: list[_Work] = []
    unread: list[Problem] = []
    unchanged: list[str] = []
    for one in find_files(paths):
        found = await asyncio.to_thread(_look, one, before.get(one.name), embedder.name)
        match found:
            case Problem():
                unread.append(found)
            case _Work():
                works.append(found)
            case None:
                unchanged.append(one.name)
    problems = (
        *unread,
        *(work.entry.problem for work in works if work.entry.problem is not None),
        *(problem for name in unchanged if (problem := before[name].problem) is not None),
    )
    problems = tuple(sorted(problems, key=lambda problem: problem.name))
    if not any(work.chunks for work in works) and not any(before[name].readable for name in unchanged):
        reasons = "; ".join(f"{problem.name} {problem.what}" for problem in problems[:3]) or "the folder is empty"
        raise BadInputError(
            f"No document at {named(paths)} could be read: {reasons}",
            fix=f"Give files of these types: {', '.join(READERS)}.",
        )
    embedded = await _embed(file, works, embedder, on_progress)
    removed = before.keys() - set(unchanged) - {work.name for work in works}
    if works or removed:
        file.remove(removed)
    return Update(
        added=tuple(work.name for work in works if work.name not in before),
        changed=tuple(work.name for work in works if work.name in before),
        removed=tuple(sorted(removed)),
        unchanged=tuple(unchanged),
        embedded=embedded,
        problems=problems,
    )


def _look(file: File, known: Entry | None, embedder: str) -> _Work | Problem | None:
    """What there is to do for a file: work, nothing, or nothing that can be done."""
    try:
        data = file.load()
    except BadInputError as error:
        return Problem(name=file.name, what=error.what, fix=error.fix)
    digest = hashlib.sha256(f"{READING}|{embedder}\0".encode() + data).digest()
    if known is not None and known.digest == digest:
        return None
    try:
        content = file.read(data)
    except BadInputError as error:
        problem = Problem(name=file.name, what=error.what, fix=error.fix)
        return _Work(name=file.name, entry=Entry(digest=digest, problem=problem, readable=False), chunks=(), keys=())
    missing = content.missing
    problem = Problem(name=file.name, what=missing, fix="The rest of it is used.") if missing else None
    return _work(Document(name=file.name, content=content), Entry(digest=digest, problem=problem), embedder)


def _work(document: Document, entry: Entry, embedder: str) -> _Work:
    chunks = chunk(document)
    keys = tuple(key_of(part, embedder) for part in chunks)
    return _Work(name=document.name, entry=entry, chunks=chunks, keys=keys)


def key_of(part: Chunk, embedder: str) -> bytes:
    """What a passage's vector is known by."""
    return hashlib.sha256(f"{embedder}\0{part.for_embedding()}".encode("utf-8", "replace")).digest()


async def add(file: IndexFile, documents: Sequence[Document], embedder: Embedder) -> None:
    """Put documents that are in no file into an index."""
    works = [_work(document, Entry(digest=b"", problem=None), embedder.name) for document in documents]
    await _embed(file, works, embedder, lambda _done, _all: None)


async def _embed(
    file: IndexFile, works: Sequence[_Work], embedder: Embedder, on_progress: Callable[[int, int], None]
) -> int:
    """Embed what has no vector yet, and write each document as soon as all of it has; how many were embedded."""
    texts = {key: part.for_embedding() for work in works for part, key in zip(work.chunks, work.keys, strict=True)}
    absent = texts.keys() - file.known(list(texts))
    done = 0
    for work in works:
        rows: dict[bytes, bytes] = {}
        fresh = [key for key in dict.fromkeys(work.keys) if key in absent]
        for batch in _batches(fresh):
            rows |= _rows(batch, await embedder.passages([texts[key] for key in batch]))
            done += len(batch)
            on_progress(done, len(absent))
        file.put(work.name, work.entry, work.chunks, work.keys, rows)
        absent -= rows.keys()
    return done


def _batches(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    yield from (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))


def _rows(keys: Sequence[bytes], vectors: "Matrix") -> Mapping[bytes, bytes]:
    return {key: vector.tobytes() for key, vector in zip(keys, vectors, strict=True)}
