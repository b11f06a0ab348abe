"""The universal scalability law: contention bends a throughput curve; what its parts tell each other lowers it."""

from collections.abc import Sequence
from math import sqrt
from typing import Final

from msgspec import Struct

from headway.trace.scaling.curve import Point, weights
from headway.trace.scaling.least_squares import fit

_COEFFICIENTS: Final = 3
_SURE: Final = (161.4, 18.5, 10.1, 7.71, 6.61, 5.99, 5.59, 5.32, 5.12, 4.96)
"""The 95 % quantile of F with 1 and 1, 2, … degrees of freedom; for more than 10 that of 10, which is too high."""
_EXACT: Final = 1e-18
"""A mean square error below this, relative to the curve, is rounding."""


class Usl(Struct, frozen=True, kw_only=True):
    """X(N) = λN / (1 + s(N-1) + kN(N-1)) (Gunther, Guerrilla Capacity Planning, 2007)."""

    alone: float
    """λ: the rate at a width of 1."""
    contention: float
    """s: the share of the work that only one can be at."""
    crosstalk: float
    """k: what each pair costs; 0 where the points do not show that there is any."""
    error: float
    """Mean square of (measured - fitted) / measured, over the points beyond its three coefficients."""

    def rate(self, width: float) -> float:
        """The rate that it expects."""
        n = width
        return self.alone * n / (1 + self.contention * (n - 1) + self.crosstalk * n * (n - 1))

    @property
    def peak(self) -> float | None:
        """√((1-s)/k), where the rate is highest, at least 1; ``None``: it rises without end."""
        if not self.crosstalk:
            return None
        return max(1.0, sqrt(max(0.0, 1 - self.contention) / self.crosstalk))


def fit_usl(points: Sequence[Point]) -> Usl | None:
    """The law through the points: N/X = 1/λ + s/λ (N-1) + k/λ N(N-1), by least squares of the relative error.

    k counts only if it betters the fit by more than noise would in 19 of 20 cases (F-test), so that noise does not give
    a peak to a curve that flattens. ``None`` for fewer than four widths.
    """
    if len({round(point.width) for point in points}) <= _COEFFICIENTS:
        return None
    rows = [
        (point.rate / point.width, *(point.rate * (point.width - 1) / point.width * k for k in (1, point.width)))
        for point in points
    ]
    heavy = weights(points)
    whole, plain = fit(rows, heavy, (0, 1, 2)), fit([row[:2] for row in rows], heavy, (0, 1))
    if whole is None or plain is None:
        return None
    spare = len(points) - _COEFFICIENTS
    noise = max(whole.rest / spare, _EXACT)
    sure = _SURE[min(spare, len(_SURE)) - 1]
    best = whole if (plain.rest - whole.rest) / noise > sure else plain
    inverse, contention, crosstalk = (*best.coefficients, 0.0)[:_COEFFICIENTS]
    if not inverse:
        return None
    return Usl(
        alone=1 / inverse, contention=contention / inverse, crosstalk=crosstalk / inverse, error=best.rest / spare
    )
