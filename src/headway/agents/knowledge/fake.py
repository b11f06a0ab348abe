"""An embedder without a model: it knows a text by its words. For tests and trying things out."""

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

DIMENSIONS: Final = 512


class WordEmbedder:
    """Counts words into hashed dimensions: texts are near if they share words, and only then."""

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.embedded: list[str] = []
        """Passages that were embedded, oldest first."""

    async def passages(self, texts: Sequence[str]) -> "Matrix":
        """A row per text."""
        self.embedded += texts
        return _counted(texts)

    async def query(self, text: str) -> "Matrix":
        """The same as for a passage."""
        return _counted([text])


def _counted(texts: Sequence[str]) -> "Matrix":
    import numpy as np  # noqa: PLC0415 - an optional package

    rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
