"""Documents: files read into blocks of text that remember where they stood."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.agents.knowledge.markup import read_html, read_markdown, read_plain
from headway.agents.knowledge.pdf import read_pdf
from headway.agents.knowledge.text import Content
from headway.core.errors import BadInputError, NotFoundError

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest file that is read; bigger ones are reported and left out."""

READERS: Final[dict[str, Callable[[bytes], Content]]] = {
    ".pdf": read_pdf,
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


class Reading(Struct, frozen=True, kw_only=True):
    """All that came of reading a path."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def read_documents(path: Path) -> Reading:
    """Read one file, or every file of a folder and its sub-folders whose name does not begin with a dot.

    Raises:
        NotFoundError: there is nothing at ``path``.
        BadInputError: no file of it gave any text; the message carries the first few reasons.
        MissingExtraError: the packages that read documents are not installed.
    """
    _must_exist(path)
    documents: list[Document] = []
    problems: list[Problem] = []
    for name, file in _files(path):
        try:
            content = _read(file)
        except BadInputError as error:
            problems.append(Problem(name=name, what=error.what, fix=error.fix))
            continue
        documents.append(Document(name=name, content=content))
        if content.missing:
            problems.append(Problem(name=name, what=content.missing, fix="The rest of it is used."))
    if not documents:
        reasons = "; ".join(f"{problem.name} {problem.what}" for problem in problems[:3]) or "the folder is empty"
        raise BadInputError(
            f"No document at {path} could be read: {reasons}",
            fix=f"Give files of these types: {', '.join(READERS)}.",
        )
    return Reading(documents=tuple(documents), problems=tuple(problems))


def look_for_documents(path: Path) -> None:
    """See without reading any whether there can be documents at ``path``, for those who have much to do first.

    Raises:
        NotFoundError: there is nothing at ``path``.
        BadInputError: no file of it has a type that is read.
    """
    _must_exist(path)
    if not any(file.suffix.lower() in READERS for _, file in _files(path)):
        raise BadInputError(
            f"No file at {path} is of a type that is read.", fix=f"Give files of these types: {', '.join(READERS)}."
        )


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise NotFoundError(f"There are no documents at {path}.", fix="Give a file or a folder that exists.")


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        if file.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), file


def _read(file: Path) -> Content:
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        kind = file.suffix or "no ending"
        raise BadInputError(f"is of a type that is not read ({kind}).", fix=f"Known types: {', '.join(READERS)}.")
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise BadInputError(f"is {size} bytes long; the limit is {MAX_BYTES}.", fix="Split it.")
        data = file.read_bytes()
    except OSError as error:
        raise BadInputError(f"could not be opened: {error.strerror}.", fix="Check its permissions.") from error
    content = reader(data)
    if not content.blocks:
        raise BadInputError("holds no text.", fix="Leave it out, or check that it is the right file.")
    return content
