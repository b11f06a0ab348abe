"""Cutting what does not fit: between lines, else between words, else between characters; nothing is lost."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from headway.core.errors import BadInputError
from headway.runtime.chunking.chunk import Lined, Part
from headway.runtime.chunking.measure import Measure

_LAST_GAP: Final = re.compile(r"\s(?=\S*\Z)")
"""The last white space of a text."""


def most(limit: int, fits: Callable[[int], bool], step: int = 1) -> int:
    """The largest number up to ``limit`` that fits, if none above one that does not fit does; 0: not even 1.

    What it returns was tried, so it fits in any case.

    Args:
        limit: there is no larger one.
        fits: tries a number.
        step: the first to try.
    """
    good = 0
    while good < limit and fits(min(good + step, limit)):
        good, step = min(good + step, limit), 2 * step
    bad = min(good + step, limit + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def cut(lined: Lined, start: int, end: int, budget: int, measure: Measure, place: str = "") -> Iterator[Part]:
    """The characters from ``start`` to before ``end`` as parts of at most ``budget`` tokens each, as `Part.written`.

    Raises:
        BadInputError: the budget does not even hold the line that names the source, and one character.
    """
    while start < end:
        stop = reach(lined, start, end, budget, measure, place)
        yield lined.part(start, stop, place=place)
        start = stop


def reach(lined: Lined, start: int, end: int, budget: int, measure: Measure, place: str = "") -> int:
    """Up to where the part from ``start`` on fits; it raises as `cut`."""

    def fits(length: int) -> bool:
        return measure.fits(lined.written(start, start + length, place), budget)

    longest = most(end - start, fits, step=budget)
    if not longest:
        raise BadInputError(
            f"A budget of {budget} tokens does not hold the line that names {lined.path}, and a character of it.",
            fix="Raise the budget, or give the document a shorter path.",
        )
    stop = start + longest
    if stop == end:
        return end
    line = lined.starts[bisect_right(lined.starts, stop) - 1]
    if line > start and fits(line - start):
        return line
    gap = _LAST_GAP.search(lined.text[start:stop])
    return start + gap.end() if gap is not None and fits(gap.end()) else stop
