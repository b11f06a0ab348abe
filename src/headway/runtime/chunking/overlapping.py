"""By tokens: one piece after another, each beginning with the end of the one before it, as far as declared."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from headway.core.errors import BadInputError
from headway.runtime.chunking.chunk import Chunk, Document, Lined, Part
from headway.runtime.chunking.cutting import most, reach
from headway.runtime.chunking.measure import ESTIMATE, Measure, check
from headway.runtime.chunking.packing import chunk_of


def by_tokens(
    documents: Iterable[Document], budget: int, *, overlap: int = 0, measure: Measure = ESTIMATE
) -> list[Chunk]:
    """Cut each document into pieces as long as the budget lets them be; what is near a cut is in both of them.

    Args:
        documents: each is cut by itself.
        budget: tokens that a chunk may have, the line that names its source among them.
        overlap: tokens, at most, with which a chunk repeats the end of the one before it, in whole lines or, where not
            even a line has so few, in whole words. `Part.repeated` says how many bytes that came to.
        measure: how tokens are counted.

    Raises:
        BadInputError: the overlap is not from 0 to below the budget, or the budget does not even hold the line that
            names a document, and one character of it.
    """
    check(budget)
    if not 0 <= overlap < budget:
        raise BadInputError(
            f"overlap={overlap} of a budget of {budget} tokens makes no sense.", fix="It is from 0 to below the budget."
        )
    parts = (part for document in documents for part in _parts(Lined(document), budget, overlap, measure))
    return [chunk_of((part,), measure) for part in parts]


def _parts(lined: Lined, budget: int, overlap: int, measure: Measure) -> Iterator[Part]:
    size, start, before = len(lined.text), 0, 0
    if not size:
        yield lined.part(0, 0)
    while before < size:
        end = reach(lined, start, size, budget, measure)
        if end <= before:  # what is repeated, and the line that names the source, leave no room for anything new
            start = before
            end = reach(lined, start, size, budget, measure)
        yield lined.part(start, end, repeated=before - start)
        start, before = _again(lined, start, end, overlap, measure), end


def _again(lined: Lined, start: int, end: int, overlap: int, measure: Measure) -> int:
    """From where the piece after the one from ``start`` to ``end`` repeats it."""

    def earliest(places: list[int]) -> int:
        fitting = most(len(places), lambda n: measure.fits(lined.text[places[-n] : end], overlap))
        return places[-fitting] if fitting else end

    lines = lined.starts[bisect_right(lined.starts, start) : bisect_left(lined.starts, end)]
    found = earliest(lines)
    if found == end and overlap:
        begin = lines[-1] if lines else start
        words = lined.text[begin:end].split(" ")
        found = earliest([begin + at for at in accumulate(len(word) + 1 for word in words[:-1])])
    return found
