"""What the agent is given for one question, and what comes of it."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import Conversation
from headway.agents.knowledge.model import Model
from headway.agents.knowledge.plan import Plan
from headway.agents.knowledge.retrieval.index import Passage

ANSWER_TOKENS: Final = 400
"""Room for a paragraph and three quotes."""


class Searched(Protocol):
    """Documents that can be searched."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All passages, ordered by document and place."""
        ...

    @property
    def embedder(self) -> str:
        """The name of the model that says what is near."""
        ...

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """The ``k`` best passages, the best first."""
        ...


class Assignment(Struct, frozen=True, kw_only=True):
    """A question, the documents, the model, and where to tell of progress."""

    question: str
    index: Searched
    model: Model
    on_text: Callable[[str], None]
    """Given the final answer piece by piece while it is written."""
    on_step: Callable[[str], None]
    """Told in plain words what is done next."""


class Outcome(Struct, frozen=True, kw_only=True):
    """A conversation whose last message is the answer, and what it was written from."""

    conversation: Conversation
    shown: tuple[Chunk, ...]
    """The passages that the model was shown, in the order of their numbers."""
    plan: Plan | None = None


def shown(chunks: Sequence[Chunk], first: int = 1) -> str:
    """Passages as the model reads them, the nearest last: small models heed best what stands next to the question.

    Args:
        chunks: the nearest first.
        first: number of the first one; the numbers go on over several searches.
    """
    numbered = [f"[{number}] {chunk.title}\n{chunk.text}" for number, chunk in enumerate(chunks, first)]
    return "\n\n".join(reversed(numbered))
