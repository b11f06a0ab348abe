"""Quantiles that say how sure they are, and the difference of two; nothing is assumed about how values are spread.

A quantile here is the nearest rank: the smallest value that at least the share ``q`` of all values do not exceed. So it
is always a value that occurred, and infinite values (failures) may be among them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil, exp, inf, lgamma, log, sqrt
from operator import itemgetter
from typing import Final

from msgspec import Struct

LEVEL: Final = 0.95
"""Of every interval here: how often one like it holds the truth."""
_DRAWS: Final = 10_000
_TAIL: Final = 10.0
"""Standard deviations beyond which a binomial's probabilities are below what floats can add up."""


class Quantile(Struct, frozen=True, kw_only=True):
    """A quantile of a sample, with what the sample says about the quantile of all that it was drawn from."""

    q: float
    value: float
    low: float | None
    """Lower end of the interval; ``None``: too few values for one."""
    high: float | None
    """Upper end; ``None``: too few values, so the true quantile may lie above all that was seen."""
    n: int

    @property
    def supported(self) -> bool:
        """Whether the sample is large enough to bound it on both sides."""
        return self.low is not None and self.high is not None


class Difference(Struct, frozen=True, kw_only=True):
    """What a quantile moved by from one sample to another; positive: it grew."""

    q: float
    before: Quantile
    after: Quantile
    delta: float
    low: float
    high: float

    @property
    def supported(self) -> bool:
        """Whether both samples are large enough; if not, the interval is of what was seen and no more."""
        return self.before.supported and self.after.supported

    @property
    def shown(self) -> bool:
        """Whether the samples show any difference: both are large enough, and the interval excludes none."""
        return self.supported and not self.low <= 0.0 <= self.high


def quantile(ordered: Sequence[float], q: float) -> Quantile:
    """The quantile of an ascending sample with its distribution-free interval.

    The interval runs between order statistics: the number of values below the true quantile is binomial(n, q)
    (Hahn & Meeker, Statistical Intervals, 5.2). It exists on both sides from 6 values for p50, 72 for p95, 368 for p99.

    Raises:
        ValueError: the sample is empty, or ``q`` is not inside ]0, 1[.
    """
    n = len(ordered)
    if not n or not 0.0 < q < 1.0:
        msg = f"a quantile needs values and 0 < q < 1, got {n} values and q = {q}"
        raise ValueError(msg)
    low, high = _ranks(n, q)
    return Quantile(
        q=q,
        value=ordered[rank(n, q)],
        low=ordered[low - 1] if low > 0 else None,
        high=ordered[high - 1] if high <= n else None,
        n=n,
    )


def quantiles(values: Iterable[float], wanted: Sequence[float] = (0.5, 0.95, 0.99)) -> tuple[Quantile, ...]:
    """Several of one sample in any order; none of an empty one."""
    ordered = sorted(values)
    return tuple(quantile(ordered, q) for q in wanted) if ordered else ()


def rank(n: int, q: float) -> int:
    """Index of the quantile in an ascending sample of ``n``."""
    return max(ceil(q * n - 1e-9) - 1, 0)


@lru_cache(maxsize=64)
def _ranks(n: int, q: float) -> tuple[int, int]:
    """Ranks, from 1, that the quantile lies between with `LEVEL`; 0 and n + 1 are beyond the sample."""
    spread = _TAIL * sqrt(n * q * (1 - q)) + 2
    first, last = max(int(n * q - spread), 0), min(ceil(n * q + spread), n)
    below = list(accumulate(_binomial(k, n, q) for k in range(first, last + 1)))
    tail = (1 - LEVEL) / 2
    low = first + bisect_left(below, tail)  # P(fewer than low values lie below) <= tail
    high = first + bisect_left(below, 1 - tail) + 1
    return low, high


def _binomial(k: int, n: int, q: float) -> float:
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log(1 - q))


class Bootstrap:
    """Differences of quantiles with bootstrap intervals (percentile method).

    No resample is made: the rank of a bootstrap sample's quantile is ``n x Beta(k, n - k + 1)`` rounded down, k being
    the quantile's own rank, since the k-th smallest of n uniform draws is so distributed (David & Nagaraja, Order
    Statistics, 2.3). Ranks drawn once serve all samples of one size.

    Args:
        beta: draws from a beta distribution; a seeded one gives the same intervals every time.
    """

    def __init__(self, beta: Callable[[float, float], float]) -> None:
        self._beta = beta
        self._drawn: dict[tuple[int, float, int], list[int]] = {}

    def difference(self, before: Sequence[float], after: Sequence[float], q: float, level: float = LEVEL) -> Difference:
        """What the quantile moved by between two ascending samples.

        Args:
            before: one sample.
            after: the other.
            q: which quantile.
            level: of the interval; more than `LEVEL` where many figures are compared and chance has many tries.
        """
        ranks = zip(self._ranks(len(before), q, 0), self._ranks(len(after), q, 1), strict=True)
        moved = sorted([_minus(after[j], before[i]) for i, j in ranks])
        tail = (1 - level) / 2
        first, second = quantile(before, q), quantile(after, q)
        return Difference(
            q=q,
            before=first,
            after=second,
            delta=_minus(second.value, first.value),
            low=moved[rank(_DRAWS, tail)],
            high=moved[rank(_DRAWS, 1 - tail)],
        )

    def _ranks(self, n: int, q: float, side: int) -> list[int]:
        """Draws for one side; the two sides' must not be the same ones, or equal samples would never differ."""
        if (n, q, side) not in self._drawn:
            k = rank(n, q) + 1
            self._drawn[n, q, side] = [min(int(n * self._beta(k, n - k + 1)), n - 1) for _ in range(_DRAWS)]
        return self._drawn[n, q, side]


def _minus(a: float, b: float) -> float:
    return 0.0 if a == b == inf else a - b


class Line(Struct, frozen=True, kw_only=True):
    """``y = intercept + slope x``."""

    slope: float
    slope_low: float
    slope_high: float
    intercept: float
    n: int


def fit(points: Sequence[tuple[float, float]], *, least: int = 8) -> Line | None:
    """Theil-Sen line through the points: the median of the slopes of pairs, which a few outliers do not move.

    Its interval is Sen's (1968), from the order statistics of the slopes and Kendall's variance. At most 600 points,
    evenly chosen by x, are paired. ``None`` where fewer than ``least`` points or fewer than 3 different x make a line a
    guess.
    """
    chosen = _spread(sorted(points, key=itemgetter(0)), 600)
    n = len(chosen)
    if n < least or len({x for x, _ in chosen}) < 3:  # noqa: PLR2004 - the docstring says so
        return None
    slopes = sorted(
        [
            (above - below) / (right - left)
            for i, (left, below) in enumerate(chosen, 1)
            for right, above in chosen[i:]
            if right > left
        ]
    )
    middle = slopes[rank(len(slopes), 0.5)]
    reach = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18) / 2
    low = slopes[max(int(len(slopes) / 2 - reach), 0)]
    high = slopes[min(ceil(len(slopes) / 2 + reach), len(slopes) - 1)]
    rests = sorted(y - middle * x for x, y in chosen)
    return Line(slope=middle, slope_low=low, slope_high=high, intercept=rests[rank(n, 0.5)], n=len(points))


def _spread(ordered: list[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    step = len(ordered) / most
    return ordered if step <= 1 else [ordered[int(i * step)] for i in range(most)]
