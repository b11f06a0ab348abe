"""Quotes: what an answer claims that a passage says, and whether it says so."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from headway.agents.knowledge.chunks import Chunk
from headway.agents.knowledge.retrieval.terms import WORD, terms

NOT_HELD: Final = "NOT IN THE DOCUMENTS"
"""What a model is told to say when the passages do not hold the answer; in English whatever the question's language."""
QUOTE: Final = "QUOTE"

RULES: Final = (
    "Use nothing but the passages. "
    f"If they do not hold the answer, reply only: {NOT_HELD}. Answer in the language of the question. "
    f"After the answer give one to three quotes that prove it, each on a line of its own, like this: "
    f'{QUOTE} [1] "words copied exactly from passage 1"'
)
"""What a model is told about quotes and about not knowing."""

_BEGUN: Final = re.compile(rf"[\s>*_#-]*{QUOTE}\s*[\[\d:\"“*]", re.IGNORECASE)
_LINE: Final = re.compile(rf"[\s>*_#-]*{QUOTE}[\s*]*\[?\s*(\d{{1,9}})?\s*\]?[\s:.*_-]*(.*)", re.IGNORECASE)
_EDGES: Final = " \t\r\n>*_#-"
_GAP: Final = re.compile(r"\.\.\.|…|\[\s*…\s*\]")
LEAST: Final = 2
"""Terms that a quote must have: "of the" stands in every document and proves nothing."""


class Quote(Struct, frozen=True, kw_only=True):
    """Words that stand in a document."""

    text: str
    source: int
    """The number of the passage."""
    document: str
    place: str
    """Its page, or the headings above it."""


class Dropped(Struct, frozen=True, kw_only=True):
    """A quote that was not believed."""

    text: str
    why: str


class Grounded(Struct, frozen=True, kw_only=True):
    """An answer apart from its quotes, and what became of them."""

    text: str
    quotes: tuple[Quote, ...]
    dropped: tuple[Dropped, ...]
    held: bool
    """False: the model said that the passages do not hold the answer, and quoted nothing that they do say."""


def ground(answer: str, shown: Mapping[int, Chunk]) -> Grounded:
    """Part an answer from its quotes, and look each up in the passages.

    A quote stands where the same words follow each other in a passage, whatever their case, punctuation and line
    breaks; what it leaves out it marks by "…", and its parts stand in the same order. One that stands in another
    passage than it names is put right; one that stands in none is dropped.

    Args:
        answer: as the model wrote it.
        shown: the passages that it was shown, by their numbers.
    """
    said: list[str] = []
    quotes: list[Quote] = []
    dropped: list[Dropped] = []
    texts = {number: _words(chunk.text) for number, chunk in shown.items()}
    for line in answer.splitlines():
        match = _LINE.match(line) if _BEGUN.match(line) else None
        if match is None:
            said.append(line)
            continue
        text = match[2].strip().strip("\"'“”„«»「」").strip()
        found = _looked_up(text, int(match[1] or 0), shown, texts)
        if isinstance(found, Dropped):
            dropped.append(found)
        elif found not in quotes:
            quotes.append(found)
    text = "\n".join(said).strip()
    refused = _words(NOT_HELD) in _words(text) or not _words(text).strip()
    return Grounded(text=text, quotes=tuple(quotes), dropped=tuple(dropped), held=bool(quotes) or not refused)


def _looked_up(text: str, named: int, shown: Mapping[int, Chunk], texts: Mapping[int, str]) -> Quote | Dropped:
    parts = [words for part in _GAP.split(text) if (words := _words(part)).strip()]
    if len(terms(text)) < LEAST:
        return Dropped(text=text, why="it is too short to prove anything")
    order = sorted(shown, key=lambda number: number != named)
    number = next((number for number in order if _stands(parts, texts[number])), None)
    if number is None:
        return Dropped(text=text, why="it stands in none of the passages")
    return Quote(text=text, source=number, document=shown[number].document, place=shown[number].place)


def _stands(parts: Sequence[str], text: str) -> bool:
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part) - 1  # the space between two parts is one
    return True


def _words(text: str) -> str:
    """Words with one space before, between and behind them, so that only whole words are found."""
    return f" {' '.join(WORD.findall(unicodedata.normalize('NFKC', text).casefold()))} "


class Spoken:
    """Hands on what a person is to see of an answer that comes piece by piece.

    That is all but quotes, which are not looked up yet, and the words for not knowing.

    Args:
        show: given the text.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._line = ""
        """What has come of a line that may yet turn out to be a quote."""
        self._open = False
        """Whether this line is being shown."""
        self._over = False

    def feed(self, piece: str) -> None:
        """A piece of the answer."""
        for part in piece.splitlines(keepends=True):
            self._take(part)

    def end(self) -> None:
        """The answer is at its end."""
        if self._line.strip() and not self._over:
            self._show(self._line)
        self._line = ""

    def _take(self, part: str) -> None:
        if self._over:
            return
        if self._open:
            self._tell(part)
            return
        self._line += part
        begun = self._line.strip(_EDGES).upper()
        if _BEGUN.match(self._line) or begun.startswith(NOT_HELD):
            self._over = True
        elif (begun and part.endswith("\n")) or not any(mark.startswith(begun) for mark in (QUOTE, NOT_HELD)):
            self._tell(self._line)

    def _tell(self, text: str) -> None:
        """Show it, but for line ends behind it: they belong to what comes next, if that is to be seen."""
        self._line = text[len(text.rstrip("\r\n")) :]
        self._open = not self._line
        self._show(text.removesuffix(self._line))
