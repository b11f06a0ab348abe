"""Finding a text inside other texts without keeping either: by its most telling phrase, then by digest."""

import re
from collections.abc import Iterator
from typing import TypeAlias, assert_never

import msgspec
from msgspec import Struct
from xxhash import xxh3_64_intdigest

MIN_TEXT = 40
"""Characters of a text that is worth recognising: shorter ones are said by everybody."""
MAX_PIECES = 8
"""Texts kept of one answer: the whole, and the longest strings inside it."""
MAX_SCAN = 65_536
"""Characters of a request that are searched for known texts, the latest first."""

Json: TypeAlias = "str | int | float | list[Json] | dict[str, Json] | None"

_PHRASE = re.compile(r"""[^\s.,:;!?"'`<>|()\[\]{}\\][^\n.,:;!?"'`<>|()\[\]{}\\]{14,}""")
"""A run of words without punctuation: the same whatever stands around it."""
_BLOCK = re.compile(r"<(\w+)>(.*?)</\1>|```\w*\n(.*?)```", re.DOTALL)


class Piece(Struct, frozen=True):
    """A text, known by one of its phrases and by its digest."""

    key: int
    """Of the phrase."""
    offset: int
    """Of the phrase in the text."""
    length: int
    digest: int


def piece(text: str) -> Piece:
    """Make ``text`` findable by its longest phrase that punctuation bounds on both sides, else by its longest."""
    best: tuple[bool, int, int, str] | None = None
    for match in _PHRASE.finditer(text):
        start, end = match.span()
        inside = start > 0 and end < len(text)
        if best is None or (inside, end - start) > best[:2]:
            best = (inside, end - start, start, match[0])
    whole = digest(text)
    if best is None:
        return Piece(key=whole, offset=0, length=len(text), digest=whole)
    return Piece(key=digest(best[3].rstrip()), offset=best[2], length=len(text), digest=whole)


def pieces(answer: str) -> list[str]:
    """The texts of an answer that another request may carry: the whole, JSON strings and marked blocks inside it."""
    found = {answer: None} if len(answer) >= MIN_TEXT else {}
    inner = sorted(_inside(answer), key=len, reverse=True)
    found |= {text: None for text in inner if len(text) >= MIN_TEXT}
    return list(found)[:MAX_PIECES]


def phrases(text: str) -> Iterator[tuple[int, int]]:
    """Key and position of everything in ``text`` by which a piece may be known."""
    yield digest(text), 0
    for match in _PHRASE.finditer(text):
        yield digest(match[0].rstrip()), match.start()


def holds(text: str, position: int, wanted: Piece) -> bool:
    """Whether ``text`` contains the piece whose phrase was found at ``position``."""
    start = position - wanted.offset
    return start >= 0 and digest(text[start : start + wanted.length]) == wanted.digest


def strings(json: str) -> list[str]:
    """Every string value inside a JSON text, trimmed; none if it is not JSON."""
    try:
        value: Json = msgspec.json.decode(json)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return []
    found: list[str] = []
    todo = [value]
    while todo:
        match todo.pop():
            case str() as text:
                found.append(text.strip())
            case list() as items:
                todo.extend(items)
            case dict() as fields:
                todo.extend(fields.values())
            case int() | float() | None:  # numbers, booleans and null say nothing
                pass
            case never:
                assert_never(never)
    return found


def _inside(answer: str) -> list[str]:
    """Texts that an answer wraps: in JSON (bare or fenced), in a pair of tags, in a fenced block."""
    if answer.startswith(("{", "[")):
        return strings(answer)
    found: list[str] = []
    for match in _BLOCK.finditer(answer):
        block = (match[2] or match[3] or "").strip()
        found.append(block)
        if block.startswith(("{", "[")):
            found.extend(strings(block))
    return found


def digest(text: str) -> int:
    """A key for a text."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
