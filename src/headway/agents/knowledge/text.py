"""Text that remembers its place, and a measure of its length in tokens."""

from msgspec import Struct


class Block(Struct, frozen=True):
    """A paragraph, list item or table row."""

    text: str
    place: str
    """Where in the document it stood: the headings above it, or its page."""


class Content(Struct, frozen=True, kw_only=True):
    """What a reader made of one file."""

    title: str
    """Empty where the file names none."""
    blocks: tuple[Block, ...]
    missing: str = ""
    """What could not be read although the rest could, as a sentence without a subject; empty: nothing."""


def about_tokens(text: str) -> int:
    """Tokens that ``text`` will take, roughly: a quarter of its UTF-8 bytes.

    The quarter is a rule of thumb for English. Counting bytes keeps it usable for scripts whose characters take two
    or three bytes and about one token each. It is for budgets, never for figures that are shown.
    """
    return -(-len(text.encode()) // 4)


def one_line(text: str) -> str:
    """``text`` with every run of white space turned into one space, and control characters removed."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
