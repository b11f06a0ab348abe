"""Chunks: pieces of documents of which each knows where it comes from and how long it is."""

from bisect import bisect_right
from itertools import accumulate

from msgspec import Struct

from headway.core.errors import BadInputError


class Document(Struct, frozen=True):
    """A text under the name that sources cite.

    Raises:
        BadInputError: the text holds what is no character, as a file does that was not decoded cleanly.
    """

    path: str
    text: str

    def __post_init__(self) -> None:
        """Refuse what no request to a model could carry."""
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            raise BadInputError(
                f"{self.path} holds what is no character, at character {error.start}.",
                fix='Read it by `path.read_text(encoding="utf-8", errors="replace")`.',
            ) from error


class Origin(Struct, frozen=True, order=True):
    """Lines of a document."""

    path: str
    first_line: int
    """From 1."""
    last_line: int
    """It is in it too."""

    def __str__(self) -> str:
        """As people cite it."""
        if self.first_line == self.last_line:
            return f"{self.path}, line {self.first_line}"
        return f"{self.path}, lines {self.first_line} to {self.last_line}"


class Part(Struct, frozen=True, kw_only=True):
    """A piece of one document, to the byte."""

    origin: Origin
    start: int
    """Its first byte in the document's UTF-8, from 0."""
    end: int
    """The byte after its last."""
    text: str
    whole: bool
    """Whether it is all of the document."""
    place: str = ""
    """The headings that it stands under, the outermost first."""
    repeated: int = 0
    """Bytes at its beginning that the chunk before it ends with as well."""

    @property
    def written(self) -> str:
        """Its text under a line that says where it comes from."""
        return _written(self.origin, self.place, self.text, whole=self.whole)


class Chunk(Struct, frozen=True, kw_only=True):
    """What one call reads."""

    parts: tuple[Part, ...]
    tokens: int
    """Of `text`, the lines that name sources among them."""
    counted: str
    """By which tokenizer, or by what estimate."""
    exact: bool
    """Whether they were counted; else they are estimated."""
    window: tuple[float, float] | None = None
    """Of a log: from when to before when, in epoch seconds; ``None`` where its lines tell no time, and elsewhere."""

    @property
    def text(self) -> str:
        """What to give a model: the parts, each under a line that says where it comes from."""
        return "".join(part.written for part in self.parts)

    def origin(self, path: str, line: int) -> Origin | None:
        """Where a claim comes from that cites a line of it; ``None``: it does not hold that line, so nobody read it."""
        held = (part.origin for part in self.parts if part.origin.path == path)
        found = any(origin.first_line <= line <= origin.last_line for origin in held)
        return Origin(path, line, line) if found else None


class Lined:
    """A document by its lines, each with the line feed that ends it. Places in it are counted in characters."""

    def __init__(self, document: Document) -> None:
        self.path = document.path
        self.text = document.text
        lines = self.text.split("\n")
        last = lines.pop()
        self.lines = [f"{line}\n" for line in lines] + ([last] if last or not lines else [])
        self.starts = list(accumulate((len(line) for line in self.lines[:-1]), initial=0))
        """Where each line begins."""
        self._bytes = list(accumulate((len(line.encode()) for line in self.lines[:-1]), initial=0))
        self._asked = (0, 0)
        """A place and the bytes before it: where the last part began or ended, so that a long line is read once."""

    def part(self, start: int, end: int, *, place: str = "", repeated: int = 0) -> Part:
        """The characters from ``start`` to before ``end``; ``repeated`` counts characters too."""
        text, begin = self.text[start:end], self._byte(start)
        return Part(
            origin=self._origin(start, end),
            start=begin,
            end=self._byte(end),
            text=text,
            whole=self._whole(start, end),
            place=place,
            repeated=len(text[:repeated].encode()),
        )

    def written(self, start: int, end: int, place: str = "") -> str:
        """As `Part.written` would be."""
        return _written(self._origin(start, end), place, self.text[start:end], whole=self._whole(start, end))

    def line(self, at: int) -> int:
        """Which line a character is in, from 0."""
        return bisect_right(self.starts, at) - 1

    def _origin(self, start: int, end: int) -> Origin:
        return Origin(self.path, self.line(start) + 1, self.line(max(start, end - 1)) + 1)

    def _whole(self, start: int, end: int) -> bool:
        return start == 0 and end == len(self.text)

    def _byte(self, at: int) -> int:
        line = self.line(at)
        place, before = self.starts[line], self._bytes[line]
        if place < self._asked[0] <= at:
            place, before = self._asked
        self._asked = (at, before + len(self.text[place:at].encode()))
        return self._asked[1]


def _written(origin: Origin, place: str, text: str, *, whole: bool) -> str:
    source = origin.path if whole else str(origin)
    shown = "".join(mark if mark.isprintable() else "?" for mark in source)
    under = f" ({place})" if place else ""
    return f"=== {shown}{under} ===\n{text}{'' if text.endswith(chr(10)) else chr(10)}"
