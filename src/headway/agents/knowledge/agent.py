"""The agent: answers a question from an index of documents, directly or by a plan."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Literal, assert_never

from msgspec import Struct

from headway.agents.knowledge.assignment import Assignment
from headway.agents.knowledge.conversation import BrokenOffError, CallRecord
from headway.agents.knowledge.direct import answer_directly
from headway.agents.knowledge.index import Index
from headway.agents.knowledge.plan import Plan
from headway.agents.knowledge.planning import answer_by_plan
from headway.core.errors import BadInputError
from headway.core.usage import Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Mode = Literal["direct", "planning"]

MAX_QUESTION: Final = 1000
"""Characters: a question, not a document."""


class Source(Struct, frozen=True, kw_only=True):
    """A passage that the answer was written from."""

    document: str
    place: str
    score: float
    """Cosine of what was searched for and the passage; its size depends on the embedding model."""


class KnowledgeAnswer(Struct, frozen=True, kw_only=True):
    """An answer, what it was written from and what it took."""

    question: str
    mode: Mode
    text: str
    finish_reason: str | None
    """``length``: the answer was cut off."""
    sources: tuple[Source, ...]
    """In the order in which they were found."""
    plan: Plan | None
    """``None`` where none was asked for."""
    calls: tuple[CallRecord, ...]
    seconds: float
    """From the question to the end of the answer."""

    @property
    def usage(self) -> Usage:
        """Tokens of all calls; a field is unknown when any call's is."""
        return Usage(
            input_tokens=_total(call.usage.input_tokens for call in self.calls),
            output_tokens=_total(call.usage.output_tokens for call in self.calls),
            cache_read=_total(call.usage.cache_read for call in self.calls),
        )


async def ask(
    question: str,
    index: Index,
    client: "AsyncOpenAI",
    model: str,
    *,
    on_text: Callable[[str], None] = lambda _text: None,
    on_step: Callable[[str], None] = lambda _step: None,
    on_broken: Callable[[BrokenOffError], None] | None = None,
    mode: Mode = "direct",
) -> KnowledgeAnswer:
    """Answer ``question`` from ``index``.

    Args:
        question: at most `MAX_QUESTION` characters.
        index: the documents.
        client: an OpenAI client; only its base URL and key matter.
        model: the model's name there.
        on_text: given the answer's text piece by piece while it is written.
        on_step: told in plain words what is done next.
        on_broken: told when the answer broke off while it was written; it is then asked for once more, and given to
            ``on_text`` from its beginning. ``None``: it is not.
        mode: ``direct``: search once, one call. ``planning``: the model writes a plan, whose steps are then taken.

    Raises:
        BadInputError: the question is empty or too long.
        UpstreamError: the model did not answer.
    """
    question = question.strip()
    if not 0 < len(question) <= MAX_QUESTION:
        raise BadInputError(
            f"The question has {len(question)} characters; 1 to {MAX_QUESTION} are allowed.", fix="Ask another one."
        )
    started = time.perf_counter()
    task = Assignment(
        question=question,
        index=index,
        client=client,
        model=model,
        on_text=on_text,
        on_step=on_step,
        on_broken=on_broken,
    )
    match mode:
        case "direct":
            outcome = await answer_directly(task)
        case "planning":
            outcome = await answer_by_plan(task)
        case _:
            assert_never(mode)
    calls = tuple(outcome.conversation.calls)
    return KnowledgeAnswer(
        question=question,
        mode=mode,
        text=outcome.conversation.messages[-1]["content"].strip(),
        finish_reason=calls[-1].finish_reason,
        sources=tuple(Source(document=p.chunk.document, place=p.chunk.place, score=p.score) for p in outcome.found),
        plan=outcome.plan,
        calls=calls,
        seconds=time.perf_counter() - started,
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
