"""Two straight lines: a curve that rises until a fixed number of places is taken, and hardly rises any more."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, sqrt
from typing import Final

from msgspec import Struct

from headway.trace.scaling.curve import Point, weights
from headway.trace.scaling.least_squares import Fitted, fit

_FEWEST: Final = 4
_STEPS: Final = 25
"""Of the search for a bend between two widths: it is then found to a hundred-thousandth of their distance."""
_GOLDEN: Final = (sqrt(5) - 1) / 2


class Segments(Struct, frozen=True, kw_only=True):
    """A line from 0 to the bend, and another from there on."""

    bend: float
    """The width at which they meet."""
    before: float
    """What each further width adds to the rate before the bend..."""
    after: float
    """...and after it."""
    error: float
    """Mean square of (measured - fitted) / measured, over the points beyond its three coefficients."""

    def rate(self, width: float) -> float:
        """The rate that it expects."""
        return self.before * min(width, self.bend) + self.after * max(0.0, width - self.bend)


def fit_segments(points: Sequence[Point]) -> Segments | None:
    """The two lines that come nearest to the points, by relative error; the bend is sought around the best width.

    ``None`` for fewer than four widths, and where the second line rises half as steeply as the first, or more: that is
    no bend.
    """
    widths = sorted({point.width for point in points})
    if len({round(width) for width in widths}) < _FEWEST:
        return None
    rough = [(width, fitted) for width in widths if (fitted := _bent(points, width)) is not None]
    if not rough:
        return None
    at = widths.index(min(rough, key=lambda one: one[1].rest)[0])
    ends = (widths[max(0, at - 1)], widths[at], widths[min(at + 1, len(widths) - 1)])
    fine = [_between(points, low, high) for low, high in pairwise(ends) if low < high]
    bend, fitted = min((*rough, *fine), key=lambda one: one[1].rest)
    before, after = fitted.coefficients
    if before <= 0 or after > before / 2:
        return None
    return Segments(bend=bend, before=before, after=after, error=fitted.rest / (len(points) - _FEWEST + 1))


def _between(points: Sequence[Point], low: float, high: float) -> tuple[float, Fitted]:
    """The best bend between two widths, by golden section."""
    best = (low, Fitted((0.0, 0.0), inf))
    for _ in range(_STEPS):
        reach = _GOLDEN * (high - low)
        left, right = high - reach, low + reach
        tried = [(bend, fitted) for bend in (left, right) if (fitted := _bent(points, bend)) is not None]
        best = min((best, *tried), key=lambda one: one[1].rest)
        if len(tried) == len((left, right)) and tried[0][1].rest <= tried[1][1].rest:
            high = right
        else:
            low = left
    return best


def _bent(points: Sequence[Point], bend: float) -> Fitted | None:
    """Two lines that meet there; ``None``: nothing lies beyond."""
    rows = [(min(point.width, bend) / point.rate, max(0.0, point.width - bend) / point.rate) for point in points]
    return fit(rows, weights(points))
