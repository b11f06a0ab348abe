"""Documents: files read into blocks of text that remember where they stood."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.agents.knowledge.docx import read_docx
from headway.agents.knowledge.markup import read_html, read_markdown, read_plain
from headway.agents.knowledge.pdf import read_pdf
from headway.agents.knowledge.text import Content
from headway.core.errors import BadInputError, NotFoundError

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest file that is read; bigger ones are reported and left out."""
MAX_CHARACTERS: Final = 10_000_000
"""Most text that is taken from one file, about 5,000 pages: a small file may unpack to more than memory holds."""

READERS: Final[dict[str, Callable[[bytes], Content]]] = {
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".html": read_html,
    ".htm": read_html,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".txt": read_plain,
}
"""A reader takes a file's bytes and raises `BadInputError` where it can make nothing of them."""


class Document(Struct, frozen=True, kw_only=True):
    """One file that was read."""

    name: str
    """Its path below the folder that was given; the name that sources cite."""
    content: Content


class Problem(Struct, frozen=True, kw_only=True):
    """What could not be read of one file; the other files are not touched by it."""

    name: str
    what: str
    fix: str


class File(Struct, frozen=True, kw_only=True):
    """A file that may be a document."""

    name: str
    """Its path below the folder that was given; with several folders, the folder's name before it."""
    path: Path

    @property
    def reader(self) -> Callable[[bytes], Content]:
        """What reads its type.

        Raises:
            BadInputError: nothing does.
        """
        reader = READERS.get(self.path.suffix.lower())
        if reader is None:
            kind = self.path.suffix or "no ending"
            raise BadInputError(f"is of a type that is not read ({kind}).", fix=f"Known types: {', '.join(READERS)}.")
        return reader

    def load(self) -> bytes:
        """Its bytes.

        Raises:
            BadInputError: it is of a type that is not read, too long, or cannot be opened.
        """
        _ = self.reader
        try:
            size = self.path.stat().st_size
            if size > MAX_BYTES:
                raise BadInputError(f"is {size} bytes long; the limit is {MAX_BYTES}.", fix="Split it.")
            return self.path.read_bytes()
        except OSError as error:
            raise BadInputError(f"could not be opened: {error.strerror}.", fix="Check its permissions.") from error

    def read(self, data: bytes) -> Content:
        """Its text, from its bytes.

        Raises:
            BadInputError: there is none, or too much, or it cannot be had.
        """
        content = self.reader(data)
        if not content.blocks:
            raise BadInputError("holds no text.", fix="Leave it out, or check that it is the right file.")
        length = sum(len(block.text) for block in content.blocks)
        if length > MAX_CHARACTERS:
            raise BadInputError(f"holds {length} characters; the limit is {MAX_CHARACTERS}.", fix="Split it.")
        return content


def find_files(paths: Sequence[Path]) -> list[File]:
    """Every file that is given, or lies in a folder that is given or below it and whose name does not begin with a dot.

    Raises:
        NotFoundError: there is nothing at one of ``paths``.
    """
    roots = list(dict.fromkeys(paths))
    found: dict[Path, File] = {}
    for root in roots:
        if not root.exists():
            raise NotFoundError(f"There are no documents at {root}.", fix="Give a file or a folder that exists.")
        for name, path in _files(root):
            found.setdefault(path.resolve(), File(name=f"{_called(root, roots)}{name}", path=path))
    return list(found.values())


def look_for_documents(paths: Sequence[Path]) -> None:
    """See without reading any whether there can be documents at ``paths``, for those who have much to do first.

    Raises:
        NotFoundError: there is nothing at one of them.
        BadInputError: no file has a type that is read.
    """
    if not any(file.path.suffix.lower() in READERS for file in find_files(paths)):
        raise BadInputError(
            f"No file at {named(paths)} is of a type that is read.",
            fix=f"Give files of these types: {', '.join(READERS)}.",
        )


def named(paths: Sequence[Path]) -> str:
    """Paths as a message names them."""
    return ", ".join(map(str, paths))


def _called(root: Path, roots: Sequence[Path]) -> str:
    """What tells files of one folder from those of others: nothing where there is one, else its shortest name."""
    if len(roots) == 1 or root.is_file():
        return ""
    own = root.resolve()
    alone = [other.resolve().name for other in roots].count(own.name) == 1
    return f"{own.name if alone else own}/"


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), file
