"""Hybrid search: by meaning and by words, fused, reranked, each passage once."""

from collections.abc import Mapping, Sequence
from math import log1p
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct, structs

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.embed import Embedder
from headway.agents.knowledge.retrieval.fusion import fuse
from headway.agents.knowledge.retrieval.index_file import IndexFile
from headway.agents.knowledge.retrieval.repeats import without_repeats
from headway.agents.knowledge.retrieval.terms import terms
from headway.agents.knowledge.retrieval.updating import add

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

POOL: Final = 30
"""Passages that each way of searching proposes, and that are reranked."""
COVERED: Final = 2.0
"""What it is worth to hold all of a question's terms, in standard deviations of nearness."""
ROUNDING: Final = 1e-6
"""Cosines that differ by less are the same: their sums are of 32-bit floats."""


class Passage(Struct, frozen=True, kw_only=True):
    """A chunk that was found."""

    chunk: Chunk
    number: int
    """Which it is of all passages of the index, from 1."""
    score: float
    """What it was ranked by: its nearness in standard deviations above the mean of the index, and `COVERED` times its
    coverage."""
    nearness: float
    """Cosine of what was searched for and the passage; its size depends on the embedding model."""
    coverage: float
    """Of what was searched for, the share of terms that it holds, rare ones counting more, from 0 to 1."""
    also_in: tuple[str, ...] = ()
    """Other documents that say the same in the same words."""


class Index:
    """What can be searched; from a file, by one task at a time. Close it, for example by ``with``.

    Args:
        file: closed with the index.
        embedder: the one that made the file's vectors.
    """

    def __init__(self, file: IndexFile, embedder: Embedder) -> None:
        self._file = file
        self._embedder = embedder
        self._ids, chunks, self._vectors = file.load()
        self._places = {number: at for at, number in enumerate(self._ids)}
        self.chunks = tuple(chunks)
        """All passages, ordered by document and place."""

    @property
    def embedder(self) -> str:
        """The name of the model that says what is near."""
        return self._embedder.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its file."""
        self._file.close()

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """The ``k`` best passages, the best first; of equal ones the earlier in the documents.

        Both ways of searching propose `POOL` passages, reciprocal rank fusion takes the best of what they propose, and
        those are reranked by nearness and coverage together.
        """
        if not self.chunks:
            return ()
        near = self._vectors @ (await self._embedder.query(query))[0]
        by_meaning: list[int] = (-near).argsort(kind="stable")[:POOL].tolist()
        wanted = list(dict.fromkeys(terms(query)))
        by_words = [self._places[number] for number in self._file.matching(wanted, POOL)]
        pool = fuse([by_meaning, by_words])[:POOL]
        return self._best(pool, near, self._worth(wanted), k)

    def _best(self, pool: Sequence[int], near: "Matrix", worth: Mapping[str, float], k: int) -> tuple[Passage, ...]:
        mean, deviation = float(near.mean()), float(near.std())
        found: list[tuple[int, Passage]] = []
        for at in pool:
            chunk = self.chunks[at]
            covered = coverage(chunk.for_embedding(), worth)
            nearness = float(near[at])
            above = (nearness - mean) / deviation if deviation > ROUNDING else 0.0
            score = above + COVERED * covered
            found.append((at, Passage(chunk=chunk, number=at + 1, score=score, nearness=nearness, coverage=covered)))
        ranked = [passage for _, passage in sorted(found, key=lambda one: (-one[1].score, one[0]))]
        once = without_repeats([passage.chunk.text for passage in ranked], k)
        return tuple(_with_repeats(ranked[at], [ranked[other] for other in others]) for at, others in once)

    def _worth(self, wanted: Sequence[str]) -> dict[str, float]:
        """Each term's inverse document frequency, ln(1 + (n - f + 0.5) / (f + 0.5)): what it tells apart."""
        n = len(self.chunks)
        held = {term: self._file.frequency(term) for term in wanted}
        return {term: log1p((n - count + 0.5) / (count + 0.5)) for term, count in held.items()}


def coverage(text: str, worth: Mapping[str, float]) -> float:
    """The share of ``worth`` whose terms ``text`` holds; 0 where there are no terms."""
    held = set(terms(text))
    total = sum(worth.values())
    return sum(value for term, value in worth.items() if term in held) / total if total else 0.0


def _with_repeats(passage: Passage, repeats: Sequence[Passage]) -> Passage:
    names = dict.fromkeys(repeat.chunk.document for repeat in repeats)
    names.pop(passage.chunk.document, None)
    return structs.replace(passage, also_in=tuple(names))


async def build(documents: Sequence[Document], embedder: Embedder) -> Index:
    """An index in memory of documents that are in no file."""
    file = IndexFile(None)
    try:
        await add(file, documents, embedder)
        return Index(file, embedder)
    except BaseException:
        file.close()
        raise
