"""Chunks: passages short enough to be found and to be read by a model, each with its source."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from msgspec import Struct

from headway.agents.knowledge.documents import Document
from headway.agents.knowledge.text import Block, about_tokens

BUDGET: Final = 160
"""Tokens of a chunk, roughly: a few sentences. Three of them leave a small model room to answer."""

SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - full-width marks end sentences too


class Chunk(Struct, frozen=True, kw_only=True):
    """A passage of a document."""

    document: str
    title: str
    place: str
    text: str

    def for_embedding(self) -> str:
        """The passage under its title and headings, which often name what the passage itself calls "it"."""
        return "\n".join(part for part in (self.title, self.place, self.text) if part)


def chunk(document: Document, budget: int = BUDGET) -> tuple[Chunk, ...]:
    """Cut a document into chunks of at most ``budget`` tokens (by `about_tokens`), never across a place.

    Neighbouring blocks of one place are joined while they fit; a block that does not fit alone is cut between
    sentences, else between words, else within a word. Nothing but white space is lost.
    """
    content = document.content
    return tuple(
        Chunk(document=document.name, title=content.title or document.name, place=place, text=text)
        for place, blocks in groupby(content.blocks, key=lambda block: block.place)
        for text in _join(_pieces(blocks, budget), budget)
    )


def _pieces(blocks: Iterable[Block], budget: int) -> Iterator[tuple[str, str]]:
    """Parts that fit, each with the separator that parts it from the one before."""
    for block in blocks:
        if about_tokens(block.text) <= budget:
            yield "\n", block.text
            continue
        for at, sentence in enumerate(filter(None, SENTENCE_END.split(block.text))):
            yield from ((" " if at or cut else "\n", part) for cut, part in enumerate(_cut(sentence, budget)))


def _cut(sentence: str, budget: int) -> Iterator[str]:
    if about_tokens(sentence) <= budget:
        yield sentence
        return
    yield from _join(
        ((separator, part) for word in sentence.split() for separator, part in _slices(word, budget)), budget
    )


def _slices(word: str, budget: int) -> Iterator[tuple[str, str]]:
    if about_tokens(word) <= budget:
        yield " ", word
        return
    for at in range(0, len(word), budget):  # a character takes at most four bytes, so this many always fit
        yield "" if at else " ", word[at : at + budget]


def _join(pieces: Iterable[tuple[str, str]], budget: int) -> Iterator[str]:
    text = ""
    for separator, piece in pieces:
        longer = f"{text}{separator}{piece}" if text else piece
        if text and about_tokens(longer) > budget:
            yield text
            longer = piece
        text = longer
    if text:
        yield text
