"""An index in memory: all vectors in one matrix, searched by one product."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from headway.agents.knowledge.chunks import Chunk, chunk
from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.embed import BATCH, Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


class Passage(Struct, frozen=True, kw_only=True):
    """A chunk that was found, and how near it is to the question (the cosine of their vectors)."""

    chunk: Chunk
    score: float


class Index:
    """Chunks and their vectors. `build` makes one."""

    def __init__(self, chunks: Sequence[Chunk], vectors: "Matrix", embedder: Embedder) -> None:
        self.chunks = tuple(chunks)
        self._vectors = vectors
        self._embedder = embedder

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """The ``k`` nearest chunks, the nearest first; of equally near ones the earlier in the documents."""
        vector = await self._embedder.query(query)
        scores = (self._vectors @ vector[0]).tolist()
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[:k]
        return tuple(Passage(chunk=self.chunks[at], score=scores[at]) for at in best)


async def build(
    documents: Sequence[Document],
    embedder: Embedder,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Index:
    """Cut documents into chunks and embed them.

    Args:
        documents: at least one; a document without text adds nothing.
        embedder: its cost dominates: the bundled model takes about a quarter of a second per chunk on two cores.
        on_progress: told after each batch how many chunks are embedded, and of how many.
    """
    import numpy as np  # noqa: PLC0415 - an optional package

    chunks = [part for document in documents for part in chunk(document)]
    rows: list[Matrix] = []
    for start in range(0, len(chunks), BATCH):
        batch = chunks[start : start + BATCH]
        rows.append(await embedder.passages([part.for_embedding() for part in batch]))
        on_progress(start + len(batch), len(chunks))
    return Index(chunks, np.concatenate(rows), embedder)
