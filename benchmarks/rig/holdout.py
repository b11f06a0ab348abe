"""Two halves of a set by session, and how far what one half predicts lies from what the other shows."""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from random import Random
from statistics import median

from msgspec import Struct

from headway.trace.stats import LEVEL, quantile, rank

DRAWS = 300
"""Resamples behind each interval."""
ROUNDING = 1e-9
"""Of a weight: what sums of shares may be off by."""


class Value(Struct, frozen=True):
    """One value and the session that it is of; values of one session are resampled together."""

    session: str
    value: float
    weight: float = 1.0


class Error(Struct, frozen=True):
    """predicted / actual - 1 of a quantile, with its bootstrap interval over sessions."""

    value: float
    low: float
    high: float

    @property
    def covers_none(self) -> bool:
        """Whether the interval holds 0: the prediction may be right."""
        return self.low <= 0 <= self.high


class Summary(Struct, frozen=True):
    """Many errors in three figures."""

    size: float
    """Median of |error|."""
    bias: float
    """Median of the error."""
    covered: float
    """Share of the errors whose interval holds 0."""
    of: int


def first_half(session: str, seed: int) -> bool:
    """Whether a session is in the half that predicts: by a hash, so that a session always is on one side."""
    return hashlib.blake2b(f"{seed}:{session}".encode(), digest_size=8).digest()[0] % 2 == 0


def errors(
    predicted: Sequence[Value], actual: Sequence[Value], wanted: Sequence[float], seed: int = 0
) -> dict[float, Error]:
    """Relative errors of quantiles; without those that either side is too small to bound, or whose actual one is 0."""
    sides = (predicted, actual)
    fit = [q for q in wanted if all(side and _bounded(side, q) for side in sides) and weighted(actual, q) > 0]
    if not fit:
        return {}
    dice = Random(seed)
    drawn = [_resampled(side, fit, dice) for side in sides]
    found: dict[float, Error] = {}
    for q in fit:
        ratios = sorted(
            first / second - 1 for first, second in zip(*(side[q] for side in drawn), strict=True) if second
        )
        ends = [ratios[rank(len(ratios), share)] for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
        found[q] = Error(weighted(predicted, q) / weighted(actual, q) - 1, ends[0], ends[1])
    return found


def weighted(values: Iterable[Value], q: float) -> float:
    """The least value that values of the share ``q`` of all weight do not exceed."""
    ordered = sorted(values, key=lambda one: one.value)
    sums = list(accumulate(one.weight for one in ordered))
    return ordered[bisect_left(sums, q * sums[-1] - ROUNDING)].value


def _bounded(side: Sequence[Value], q: float) -> bool:
    return quantile(sorted(one.value for one in side), q).supported


def _resampled(side: Sequence[Value], wanted: Sequence[float], dice: Random) -> dict[float, list[float]]:
    """Quantiles of as many sessions, drawn with replacement, `DRAWS` times; the values are put in order only once."""
    places: dict[str, int] = {}
    rows = [(one.value, one.weight, places.setdefault(one.session, len(places))) for one in side]
    rows.sort()
    found: dict[float, list[float]] = {q: [] for q in wanted}
    for _ in range(DRAWS):
        times = [0] * len(places)
        for place in dice.choices(range(len(places)), k=len(places)):
            times[place] += 1
        sums = list(accumulate(weight * times[place] for _, weight, place in rows))
        for q in wanted:
            found[q].append(rows[min(bisect_left(sums, q * sums[-1] - ROUNDING), len(rows) - 1)][0])
    return found


def summed(found: Iterable[Error]) -> Summary | None:
    """The errors together; ``None`` where there are none."""
    errors = list(found)
    if not errors:
        return None
    return Summary(
        size=median(abs(one.value) for one in errors),
        bias=median(one.value for one in errors),
        covered=sum(one.covers_none for one in errors) / len(errors),
        of=len(errors),
    )


def off(pairs: Sequence[tuple[float, float]], predict: Callable[[float], float]) -> tuple[float, float]:
    """Median absolute relative error and median error of a predictor of y by x; every y is above 0."""
    found = [predict(x) / y - 1 for x, y in pairs]
    return median(map(abs, found)), median(found)
