"""PDF to blocks; their places are page numbers."""

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Final

from headway.agents.knowledge.text import Block, Content, one_line
from headway.core.errors import BadInputError, MissingExtraError

if TYPE_CHECKING:
    from pypdf import PdfReader

SHORT_LINE: Final = 0.75
"""A line this much shorter than its page's longest ends a paragraph: PDFs have lines, not paragraphs."""


def read_pdf(data: bytes) -> Content:
    """Read the text of a PDF, page by page.

    Raises:
        BadInputError: it is empty, broken, locked with a password, or has pictures in place of text.
    """
    try:
        from pypdf import PdfReader  # noqa: PLC0415 - an optional package
        from pypdf.errors import DependencyError  # noqa: PLC0415 - as above
    except ImportError as error:
        raise MissingExtraError("Reading PDF", "knowledge") from error
    if not data:
        raise BadInputError("is empty (0 bytes).", fix="Fetch the file again.")
    try:
        with _quiet():
            reader = PdfReader(BytesIO(data))
            locked = reader.is_encrypted and not reader.decrypt("")
            if not locked:
                return _content(reader)
    except BadInputError:
        raise
    except DependencyError as error:
        raise BadInputError("is encrypted with AES.", fix="Decrypt it first: qpdf --decrypt IN OUT.") from error
    except Exception as error:  # a broken file makes the parser raise anything: KeyError, RecursionError, zlib.error …
        raise BadInputError(
            f"is not a PDF that can be read ({type(error).__name__}: {one_line(str(error))[:120]}).",
            fix="Fetch it again, or repair it: qpdf IN OUT.",
        ) from error
    raise BadInputError("is locked with a password.", fix="Unlock it first: qpdf --decrypt --password=… IN OUT.")


def _content(reader: "PdfReader") -> Content:
    blocks: list[Block] = []
    blank: list[int] = []
    for number, page in enumerate(reader.pages, 1):
        found = [Block(text, f"page {number}") for text in _paragraphs(page.extract_text())]
        blocks += found
        if not found:
            blank.append(number)
    if not blocks:
        raise BadInputError(
            f"has no text on its {len(blank)} page(s): it is probably a scan.",
            fix="Recognise its text first: ocrmypdf IN OUT.",
        )
    about = reader.metadata
    title = one_line((about.title if about else None) or "")
    missing = f"has no text on page(s) {', '.join(map(str, blank))}: probably pictures." if blank else ""
    return Content(title=title, blocks=tuple(blocks), missing=missing)


def _paragraphs(page: str) -> Iterator[str]:
    lines = [one_line(line) for line in page.splitlines()]
    longest = max(map(len, lines), default=0)
    paragraph: list[str] = []
    for line in lines:
        paragraph.append(line)
        if len(line) < SHORT_LINE * longest:
            yield from filter(None, [" ".join(paragraph).strip()])
            paragraph = []
    yield from filter(None, [" ".join(paragraph).strip()])


@contextmanager
def _quiet() -> Generator[None]:
    """The parser logs every oddity of a file; what matters to the reader is raised."""
    log = logging.getLogger("pypdf")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
