"""The agent: answers a question from an index of documents, says what proves the answer, or that it is not there."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from headway.agents.knowledge.assignment import Assignment, Mode, Outcome, Searched, Way
from headway.agents.knowledge.cag import answer_from_all
from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.conversation import CallRecord
from headway.agents.knowledge.direct import answer_directly
from headway.agents.knowledge.model import Model
from headway.agents.knowledge.plan import Plan
from headway.agents.knowledge.planning import answer_by_plan
from headway.agents.knowledge.quotes import Dropped, Grounded, Quote, Spoken, ground
from headway.agents.knowledge.retrieval.index import Passage
from headway.agents.knowledge.support import comparable, support
from headway.core.errors import BadInputError
from headway.core.usage import Usage

MAX_QUESTION: Final = 1000
"""Characters: a question, not a document."""
PASSAGES: Final = 3
"""Passages that the direct way shows the model, and that tell whether the documents hold an answer at all."""
DIRECT: Final = Way(mode="direct", searches=True, answer=answer_directly)
"""Search once, one call."""
WAYS: Final[Mapping[Mode, Way]] = {
    "direct": DIRECT,
    "planning": Way(mode="planning", searches=True, answer=answer_by_plan),  # its steps are taken in one conversation
    "cag": Way(mode="cag", searches=False, answer=answer_from_all),  # all documents before the question
}
"""The ways that need nothing but a model; see `headway.agents.knowledge.tools` for the one that needs a task."""


class Source(Struct, frozen=True, kw_only=True):
    """A passage that the model was shown."""

    number: int
    """By which the answer and its quotes name it."""
    document: str
    place: str
    """Its page, or the headings above it."""
    also_in: tuple[str, ...] = ()
    """Other documents that say the same in the same words."""


class Refusal(Struct, frozen=True, kw_only=True):
    """Why there is no answer."""

    by: Literal["search", "model"]
    """``search``: nothing that was found comes near enough, so no model was asked. ``model``: it said so itself."""
    why: str


class KnowledgeAnswer(Struct, frozen=True, kw_only=True):
    """An answer, what it was written from and what it took."""

    question: str
    mode: Mode
    text: str
    """Empty where there is no answer."""
    refused: Refusal | None = None
    quotes: tuple[Quote, ...] = ()
    """What proves it; each stands in the documents word for word."""
    dropped: tuple[Dropped, ...] = ()
    """What the model quoted and the documents do not say."""
    support: float | None = None
    """How well the best passages fit the question, from `support`; unknown where nothing was searched for."""
    finish_reason: str | None
    """``length``: the answer was cut off."""
    sources: tuple[Source, ...]
    """Where there is no answer, what came nearest."""
    plan: Plan | None
    """``None`` where none was asked for."""
    calls: tuple[CallRecord, ...]
    seconds: float
    """From the question to the end of the answer."""

    @property
    def grounded(self) -> bool:
        """Whether any quote proves it."""
        return bool(self.quotes)

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
    index: Searched,
    model: Model,
    *,
    on_text: Callable[[str], None] = lambda _text: None,
    on_step: Callable[[str], None] = lambda _step: None,
    way: Way = DIRECT,
    threshold: float | None = None,
) -> KnowledgeAnswer:
    """Answer ``question`` from ``index``.

    Args:
        question: at most `MAX_QUESTION` characters.
        index: the documents.
        model: who writes.
        on_text: given the answer's text, without its quotes, piece by piece while it is written.
        on_step: told in plain words what is done next.
        way: to the answer, e.g. ``WAYS["planning"]``.
        threshold: the support below which the documents are taken not to hold an answer, and no model is asked; see
            `headway.agents.knowledge.support`. ``None``: the model is always asked, and so it is where question and
            passages are not of one kind of script.

    Raises:
        BadInputError: the question is empty or too long, or the documents are too long for ``cag``.
        UpstreamError: the model did not answer.
    """
    question = question.strip()
    if not 0 < len(question) <= MAX_QUESTION:
        raise BadInputError(
            f"The question has {len(question)} characters; 1 to {MAX_QUESTION} are allowed.", fix="Ask another one."
        )
    started = time.perf_counter()
    spoken = Spoken(on_text)
    task = Assignment(question=question, index=index, model=model, on_text=spoken.feed, on_step=on_step)
    found: tuple[Passage, ...] = ()
    if way.searches:
        on_step("search: the question itself")
        found = await index.search(question, PASSAGES)
    held = support(found) if found else None
    if threshold is not None and held is not None and held < threshold and comparable(question, found):
        why = f"the best passages fit the question by {held:.2f}; an answer needs {threshold:.2f}"
        outcome = Outcome(text="", calls=(), shown={n: passage.chunk for n, passage in enumerate(found, 1)})
        refused = Refusal(by="search", why=why)
        grounded = Grounded(text="", quotes=(), dropped=(), held=False)
    else:
        outcome = await way.answer(task, found)
        spoken.end()
        grounded = ground(outcome.text, outcome.shown)
        why = "the model read the passages and found no answer in them"
        refused = None if grounded.held else Refusal(by="model", why=why)
    return KnowledgeAnswer(
        question=question,
        mode=way.mode,
        text=grounded.text if grounded.held else "",
        refused=refused,
        quotes=grounded.quotes,
        dropped=grounded.dropped,
        support=held,
        finish_reason=outcome.calls[-1].finish_reason if outcome.calls else None,
        sources=_sources(outcome.shown, found),
        plan=outcome.plan,
        calls=outcome.calls,
        seconds=time.perf_counter() - started,
    )


def _sources(shown: Mapping[int, Chunk], found: Sequence[Passage]) -> tuple[Source, ...]:
    also = {passage.chunk: passage.also_in for passage in found}
    return tuple(
        Source(number=number, document=chunk.document, place=chunk.place, also_in=also.get(chunk, ()))
        for number, chunk in shown.items()
    )


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
