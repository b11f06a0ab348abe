"""Finding a text inside other texts without keeping either: by its most telling fragment, then by digest.

Fragments are what lies between line ends, full stops, colons, quotes and angle brackets, so a text has the same ones
inside a template, a list or a pair of tags. They are cut and looked up by C loops.
"""

import re
from collections.abc import KeysView, Sequence
from typing import TypeAlias, assert_never

import msgspec
from msgspec import Struct

MIN_TEXT = 40
"""Characters of a text that is worth recognising: shorter ones are said by everybody."""
MIN_FRAGMENT = 16
"""Characters of a fragment by which a text may be found."""
MAX_PIECES = 8
"""Texts kept of one answer: the whole, and the longest strings inside it."""

Json: TypeAlias = "str | int | float | list[Json] | dict[str, Json] | None"

_BLOCK = re.compile(r"<(\w+)>(.*?)</\1>|```\w*\n(.*?)```", re.DOTALL)


class Piece(Struct, frozen=True, eq=False, gc=False):
    """A text as it stands in one answer, known by the hash of one of its fragments and by its digest."""

    keys: tuple[int, ...]
    offset: int
    """Of the fragment in the text."""
    length: int
    digest: int


def piece(text: str) -> Piece:
    """Make ``text`` findable by its longest inner fragment, else by its longest, else only as a whole."""
    cut = fragments(text)
    best = max(cut[1:-1], key=len, default="")
    keys = (hash(best),)
    if len(best) < MIN_FRAGMENT:
        best = max(cut, key=len)
        keys = hash(best), hash(" " + best)  # a fragment at the edge may have got a space before it
    if len(best) < MIN_FRAGMENT:
        best, keys = text, (hash(text),)
    return Piece(keys=keys, offset=text.find(best.strip()), length=len(text), digest=hash(text))


def pieces(answer: str) -> list[str]:
    """The texts of an answer that another request may carry: the whole, JSON strings and marked blocks inside it."""
    if len(answer) < MIN_TEXT:
        return []
    inner = _inside(answer)
    if not inner:
        return [answer]
    inner.sort(key=len, reverse=True)
    return list(dict.fromkeys([answer, *(text for text in inner if len(text) >= MIN_TEXT)]))[:MAX_PIECES]


def fragments(text: str) -> list[str]:
    """Cut ``text`` where templates do."""
    text = text.replace(".", "\n").replace(":", "\n").replace('"', "\n")
    return text.replace("<", "\n").replace(">", "\n").split("\n")


def known(text: str, whole: Sequence[str], keys: KeysView[int]) -> list[str]:
    """Those fragments of ``text``, and of the ``whole`` texts that it is made of, whose hash is one of ``keys``."""
    cut = fragments(text)
    cut += whole
    if keys.isdisjoint(map(hash, cut)):
        return []
    return [fragment for fragment in dict.fromkeys(cut) if hash(fragment) in keys]


def holds(text: str, fragment: str, wanted: Piece) -> bool:
    """Whether ``text`` contains the piece that ``fragment`` is a key of."""
    fragment = fragment.strip()
    at = text.find(fragment)
    while at >= 0:
        start = at - wanted.offset
        if start >= 0 and hash(text[start : start + wanted.length]) == wanted.digest:
            return True
        at = text.find(fragment, at + 1)
    return False


def strings(json: str) -> list[str]:
    """Every string value inside a JSON text, trimmed; none if it is not JSON."""
    try:
        value: Json = msgspec.json.decode(json)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []
    found: list[str] = []
    todo = [value]
    while todo:
        value = todo.pop()
        match value:
            case str():
                found.append(value.strip())
            case list():
                todo.extend(value)
            case dict():
                todo.extend(value.values())
            case int() | float() | None:  # numbers, booleans and null say nothing
                pass
            case _:
                assert_never(value)
    return found


def _inside(answer: str) -> list[str]:
    """Texts that an answer wraps: in JSON (bare or fenced), in a pair of tags, in a fenced block."""
    if answer.startswith(("{", "[")):
        return strings(answer)
    found: list[str] = []
    if "<" not in answer and "```" not in answer:
        return found
    for match in _BLOCK.finditer(answer):
        block = (match[2] or match[3] or "").strip()
        found.append(block)
        if block.startswith(("{", "[")):
            found.extend(strings(block))
    return found
