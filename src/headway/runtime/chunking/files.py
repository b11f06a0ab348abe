"""By file: whole files packed to a budget, and never cut when they fit."""

from collections.abc import Iterable, Iterator

from headway.runtime.chunking.chunk import Chunk, Document, Lined, Part
from headway.runtime.chunking.cutting import cut
from headway.runtime.chunking.measure import ESTIMATE, Measure, check
from headway.runtime.chunking.packing import packed


def by_file(documents: Iterable[Document], budget: int, *, measure: Measure = ESTIMATE) -> list[Chunk]:
    """Pack documents in their order; only what does not fit a chunk of its own is cut, between lines where that helps.

    Args:
        documents: in the order in which neighbours should share a chunk, e.g. by path.
        budget: tokens that a chunk may have, the lines that name its sources among them.
        measure: how tokens are counted.

    Raises:
        BadInputError: the budget does not even hold the line that names a document, and one character of it.
    """
    check(budget)

    def parts() -> Iterator[Part]:
        for document in documents:
            lined = Lined(document)
            whole = lined.part(0, len(lined.text))
            if measure.fits(whole.written, budget):
                yield whole
            else:
                yield from cut(lined, 0, len(lined.text), budget, measure)

    return list(packed(parts(), budget, measure))
