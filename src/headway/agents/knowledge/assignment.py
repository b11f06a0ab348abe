"""What the agent is given for one question, and what comes of it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from headway.agents.knowledge.conversation import BrokenOffError, Conversation
from headway.agents.knowledge.index import Index, Passage
from headway.agents.knowledge.plan import Plan

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ANSWER_TOKENS: Final = 90
"""Room for two or three sentences."""


class Assignment(Struct, frozen=True, kw_only=True):
    """A question, the documents, the model, and where to tell of progress."""

    question: str
    index: Index
    client: "AsyncOpenAI"
    model: str
    on_text: Callable[[str], None]
    """Given the final answer piece by piece while it is written."""
    on_step: Callable[[str], None]
    """Told in plain words what is done next."""
    on_broken: Callable[[BrokenOffError], None] | None = None
    """Told when the answer broke off while it was written; it is then asked for once more. ``None``: it is not."""


class Outcome(Struct, frozen=True, kw_only=True):
    """A conversation whose last message is the answer, and what it was written from."""

    conversation: Conversation
    found: tuple[Passage, ...]
    """In the order in which they were found, each once."""
    plan: Plan | None = None


def shown(passages: Sequence[Passage], first: int = 1) -> str:
    """Passages as the model reads them, the nearest last: small models heed best what stands next to the question.

    Args:
        passages: the nearest first.
        first: number of the first one; the numbers go on over several searches.
    """
    numbered = [
        f"[{number}] {passage.chunk.title}\n{passage.chunk.text}" for number, passage in enumerate(passages, first)
    ]
    return "\n\n".join(reversed(numbered))
