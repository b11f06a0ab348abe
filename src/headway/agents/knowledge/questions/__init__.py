"""Questions whose answers are known, or known not to be there: what search and refusal are measured by."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from headway.core.errors import BadInputError, NotFoundError

Kind = Literal[
    "answered",  # the documents hold the answer
    "near",  # about the documents' subject, and they do not say
    "far",  # about something else
]
FOLDER: Final = Path(__file__).parent


class Question(Struct, frozen=True, kw_only=True):
    """A question, and what the documents say to it."""

    question: str
    kind: Kind
    language: str
    """Any name; figures are told apart by it."""
    document: str = ""
    """The document that answers it, by its name or the end of it."""
    words: str = ""
    """Words that stand in the passage that answers it."""


def bundled_questions() -> tuple[Question, ...]:
    """Those that ship with the package, English and Korean, to the documents that do."""
    return read_questions(FOLDER / "questions.jsonl")


def korean_documents() -> Path:
    """Three Korean documents of an invented island, written for the questions."""
    return FOLDER / "korean"


def read_questions(path: Path) -> tuple[Question, ...]:
    """Questions from a file of JSON lines, each like `Question`.

    Raises:
        NotFoundError: the file cannot be read.
        BadInputError: a line is no question, or one that is answered does not say where.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"The questions in {path} cannot be read: {error}.", fix="Name a file.") from error
    return tuple(_question(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _question(path: Path, number: int, line: str) -> Question:
    try:
        question = msgspec.json.decode(line, type=Question)
    except msgspec.DecodeError as error:
        raise BadInputError(
            f"Line {number} of {path} is no question: {error}.",
            fix='Like {"question": "Who?", "kind": "answered", "language": "en", "document": "a.md", "words": "Al"}',
        ) from error
    if question.kind == "answered" and not (question.document and question.words):
        raise BadInputError(
            f"Line {number} of {path} is answered and does not say where.", fix='Add "document" and "words".'
        )
    return question


def halves(questions: Sequence[Question]) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """Two halves that have as many of each kind and language, to within one: one to choose by, one to report on."""
    sides: tuple[list[Question], list[Question]] = ([], [])
    seen: dict[tuple[str, Kind], int] = {}
    for question in questions:
        group = question.language, question.kind
        seen[group] = seen.get(group, 0) + 1
        sides[(seen[group] - 1) % 2].append(question)
    return tuple(sides[0]), tuple(sides[1])
