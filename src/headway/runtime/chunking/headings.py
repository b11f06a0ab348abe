"""By heading: sections of Markdown, each under the headings above it, and never cut when they fit."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from headway.runtime.chunking.chunk import Chunk, Document, Lined, Part
from headway.runtime.chunking.cutting import cut
from headway.runtime.chunking.measure import ESTIMATE, Measure, check
from headway.runtime.chunking.packing import packed

_HASHES: Final = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*\r?\n?")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_NO_PARAGRAPH: Final = re.compile(r"\s*(?:$|[#>|]|[-*+][ \t]|\d{1,9}[.)][ \t])| {4}|\t")
"""Lines below which a row of dashes is a rule, a list's or a table's, and no heading's."""


class _Section(Struct, frozen=True):
    level: int
    """0 is the document, 1 to 6 its headings."""
    place: str
    start: int


def by_heading(documents: Iterable[Document], budget: int, *, measure: Measure = ESTIMATE) -> list[Chunk]:
    """Pack sections in their order. One that fits a chunk with all below it is not cut.

    Headings are Markdown's: ``#`` to ``######``, and lines that are underlined; those in fenced code are none. Text
    before the first is a section too. A document without headings is cut as `by_file` does.

    Args:
        documents: in the order in which neighbours should share a chunk.
        budget: tokens that a chunk may have, the lines that name its sources among them.
        measure: how tokens are counted.

    Raises:
        BadInputError: the budget does not even hold the line that names a section, and one character of it.
    """
    check(budget)
    parts = (part for document in documents for part in _parts(Lined(document), budget, measure))
    return list(packed(parts, budget, measure))


def _parts(lined: Lined, budget: int, measure: Measure) -> Iterator[Part]:
    sections, size, at = _sections(lined), len(lined.text), 0
    while at < len(sections):
        section = sections[at]
        after = next((n for n in range(at + 1, len(sections)) if sections[n].level <= section.level), len(sections))
        end = sections[after].start if after < len(sections) else size
        whole = lined.part(section.start, end, place=section.place)
        if measure.fits(whole.written, budget):
            yield whole
            at = after
            continue
        own = sections[at + 1].start if at + 1 < len(sections) else size
        yield from cut(lined, section.start, own, budget, measure, section.place)
        at += 1


def _sections(lined: Lined) -> list[_Section]:
    sections = [_Section(0, "", 0)]
    above: list[tuple[int, str]] = []
    for level, title, line in _headings(lined.lines):
        above = [*(outer for outer in above if outer[0] < level), (level, title)]
        sections.append(_Section(level, " > ".join(name for _, name in above), lined.starts[line]))
    return sections


def _headings(lines: list[str]) -> Iterator[tuple[int, str, int]]:
    """Level, title and line of each heading."""
    fence, number = "", _after_front_matter(lines)
    while number < len(lines):
        line = lines[number]
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif hashes := _HASHES.match(line):
            yield len(hashes[1]), _title(line[hashes.end() :].strip()), number
        elif number + 1 < len(lines) and not _NO_PARAGRAPH.match(line):
            under = _UNDERLINE.fullmatch(lines[number + 1])
            if under:
                yield 1 if under[1].startswith("=") else 2, line.strip(), number
                number += 1
        number += 1


def _after_front_matter(lines: list[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    return next((n + 1 for n, line in enumerate(lines) if n and line.rstrip() in {"---", "..."}), 0)


def _title(text: str) -> str:
    """Without the hashes that may close it."""
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text
