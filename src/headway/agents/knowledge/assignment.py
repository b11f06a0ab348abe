"""What the agent is given for one question, and what comes of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import CallRecord
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
    """What a question came to."""

    text: str
    """What the model wrote last: the answer and its quotes."""
    calls: tuple[CallRecord, ...]
    shown: Mapping[int, Chunk]
    """The passages that the model was shown, by their numbers."""
    plan: Plan | None = None


Mode = Literal["direct", "planning", "cag", "tools"]


class Way(Struct, frozen=True, kw_only=True):
    """A way to an answer."""

    mode: Mode
    searches: bool
    """Whether it looks at passages that are found, so that what is found tells whether there can be an answer."""
    answer: Callable[[Assignment, Sequence[Passage]], Awaitable[Outcome]]
    """Given what was found for the question itself; nothing where it does not search."""


def shown(numbered: Mapping[int, Chunk]) -> str:
    """Passages as the model reads them, the last first: small models heed best what stands next to the question.

    Args:
        numbered: by their numbers, the nearest first.
    """
    return "\n\n".join(reversed([f"[{number}] {chunk.title}\n{chunk.text}" for number, chunk in numbered.items()]))
