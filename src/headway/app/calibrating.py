"""`headway refusal` as a page: how well search finds, and what each threshold of support would do."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.agents.knowledge.assignment import Searched
from headway.agents.knowledge.calibration import DEPTH, KEPT, Point, Tried, choose, curve, point, recall, tried
from headway.agents.knowledge.questions import Question, halves

DEPTHS: Final = (1, DEPTH)


class Found(Struct, frozen=True, kw_only=True):
    """How well search finds what answers the questions of one language; shares from 0 to 1."""

    language: str
    questions: int
    recall: dict[int, float]
    """By how many passages are looked at."""


class Calibration(Struct, frozen=True, kw_only=True):
    """What was measured."""

    embedder: str
    found: tuple[Found, ...]
    curve: tuple[Point, ...]
    """On the half that the threshold is chosen by."""
    chosen: Point
    """On that half."""
    held_out: Point
    """The same threshold on the other half."""
    by_language: dict[str, Point]
    """Likewise on the other half."""


async def calibrate(questions: Sequence[Question], index: Searched) -> Calibration:
    """Choose a threshold by one half of the questions and report on the other.

    Raises:
        BadInputError: the questions are not of these documents, or none is answered by them.
    """
    one, two = halves(questions)
    chosen_by, reported = await tried(one, index), await tried(two, index)
    threshold = choose(chosen_by)
    languages = dict.fromkeys(question.language for question in questions)
    return Calibration(
        embedder=index.embedder,
        found=tuple(_found(language, [*chosen_by, *reported]) for language in languages),
        curve=curve(chosen_by),
        chosen=point(chosen_by, threshold),
        held_out=point(reported, threshold),
        by_language={name: point(_of(reported, name), threshold) for name in languages},
    )


def _of(done: Sequence[Tried], language: str) -> list[Tried]:
    return [one for one in done if one.question.language == language]


def _found(language: str, done: Sequence[Tried]) -> Found:
    own = _of(done, language)
    shares = {depth: share for depth in DEPTHS if (share := recall(own, depth)) is not None}
    return Found(language=language, questions=sum(one.question.kind == "answered" for one in own), recall=shares)


def render(calibration: Calibration) -> RenderableType:
    """Two tables and what to make of them."""
    found = Table("language", "answered questions", *(f"found in first {depth}" for depth in DEPTHS), box=None)
    for row in calibration.found:
        found.add_row(row.language, str(row.questions), *(_share(row.recall.get(depth)) for depth in DEPTHS))
    trade = Table("", "threshold", "found: put to the model", "far: refused", "near: refused", box=None)
    for one in calibration.curve:
        trade.add_row("", *_cells(one))
    trade.add_section()
    trade.add_row("chosen, same half", *_cells(calibration.chosen), style="bold")
    trade.add_row("chosen, other half", *_cells(calibration.held_out), style="bold")
    for language, one in calibration.by_language.items():
        trade.add_row(f"  of it {language}", *_cells(one))
    words = (
        f"The threshold is the highest that puts at least {KEPT:.0%} of those questions of one half to the model whose "
        "answer is found. far: about something else. near: about the documents' subject, and they do not say; those "
        "the model has to refuse when it has read the passages, or its quotes fail."
    )
    title = Text(f"Embedding model: {calibration.embedder}\n", "dim")
    return Group(title, found, Text(), trade, Text(), Text(words, "dim"))


def _cells(one: Point) -> tuple[str, ...]:
    return f"{one.threshold:.3f}", *map(_share, (one.kept, one.refused_far, one.refused_near))


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.0%}"
