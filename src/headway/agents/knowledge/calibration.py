"""Calibration: from which support on a question is put to the model, and what that choice costs."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.agents.knowledge.agent import PASSAGES
from headway.agents.knowledge.assignment import Searched
from headway.agents.knowledge.questions import Question
from headway.agents.knowledge.retrieval.index import Passage
from headway.agents.knowledge.support import support
from headway.core.errors import BadInputError

DEPTH: Final = PASSAGES
"""Passages that are looked at: as many as the direct way shows the model."""
KEPT: Final = 0.95
"""The share of questions with an answer that a threshold has to let through: a wrong refusal costs more than a call
that finds nothing, because the model can still refuse."""


class Tried(Struct, frozen=True, kw_only=True):
    """A question that was searched for."""

    question: Question
    support: float
    rank: int | None
    """Of the first passage that answers it, from 1; ``None``: not among the first `DEPTH`, or nothing answers it."""


class Point(Struct, frozen=True, kw_only=True):
    """What a threshold does, as shares from 0 to 1; ``None``: there are no such questions."""

    threshold: float
    kept: float | None
    """Of the questions whose answer search finds, those put to the model; the others no threshold can help."""
    refused_far: float | None
    """Of the questions about something else, those refused."""
    refused_near: float | None
    """Of the questions about the documents' subject that they do not answer, those refused."""


async def tried(questions: Sequence[Question], index: Searched) -> tuple[Tried, ...]:
    """Search for each question.

    Raises:
        BadInputError: no passage holds the words that should answer a question; the set is not of these documents.
    """
    done: list[Tried] = []
    for question in questions:
        if question.kind == "answered" and not any(_answers(question, c.document, c.text) for c in index.chunks):
            raise BadInputError(
                f"No passage of {question.document} holds {question.words!r}, which should answer: {question.question}",
                fix="Give the documents that the questions are about, or mend the question.",
            )
        found = await index.search(question.question, DEPTH)
        done.append(Tried(question=question, support=support(found), rank=_rank(question, found)))
    return tuple(done)


def recall(done: Sequence[Tried], depth: int) -> float | None:
    """Of the questions that are answered, the share whose answer is among the first ``depth`` passages."""
    return _share([one.rank is not None and one.rank <= depth for one in done if one.question.kind == "answered"])


def point(done: Sequence[Tried], threshold: float) -> Point:
    """What a threshold does to these questions."""

    def refused(kind: str) -> float | None:
        return _share([one.support < threshold for one in done if one.question.kind == kind])

    kept = _share([one.support >= threshold for one in done if one.rank is not None])
    return Point(threshold=threshold, kept=kept, refused_far=refused("far"), refused_near=refused("near"))


def curve(done: Sequence[Tried], steps: int = 12) -> tuple[Point, ...]:
    """The trade-off from refusing nothing to refusing nearly all, at thresholds evenly spread over the supports."""
    low, high = min(one.support for one in done), max(one.support for one in done)
    return tuple(point(done, min(high, low + (high - low) * step / (steps - 1))) for step in range(steps))


def choose(done: Sequence[Tried]) -> float:
    """The highest threshold that lets `KEPT` of the questions through whose answer search finds.

    It lies in the middle between the support of the last question that has to be kept and the next lower one of any.

    Raises:
        BadInputError: there are none.
    """
    answerable = sorted(one.support for one in done if one.rank is not None)
    if not answerable:
        raise BadInputError("Of no question search finds an answer in the documents.", fix="Give some that it finds.")
    last = answerable[int(len(answerable) * (1 - KEPT))]
    below = max((one.support for one in done if one.support < last), default=last)
    return (last + below) / 2


def _rank(question: Question, found: Sequence[Passage]) -> int | None:
    for rank, passage in enumerate(found, 1):
        if any(_answers(question, name, passage.chunk.text) for name in (passage.chunk.document, *passage.also_in)):
            return rank
    return None


def _answers(question: Question, document: str, text: str) -> bool:
    return question.kind == "answered" and document.endswith(question.document) and question.words in text


def _share(truths: Sequence[bool]) -> float | None:
    return sum(truths) / len(truths) if truths else None
