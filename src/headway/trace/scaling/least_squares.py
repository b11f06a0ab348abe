"""Weighted least squares of a few columns, none of whose coefficients may be negative."""

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from typing import Final

from msgspec import Struct

_SINGULAR: Final = 1e-12
"""A pivot below this share of its column says that another column tells the same."""


class Fitted(Struct, frozen=True):
    """What a fit came to."""

    coefficients: tuple[float, ...]
    rest: float
    """Weighted sum of the squares of what is left."""


def fit(rows: Sequence[Sequence[float]], weights: Sequence[float], positive: Sequence[int] = ()) -> Fitted | None:
    """Coefficients by which the rows come nearest to 1; ``None``: the rows do not tell them apart.

    A row divided by what it should come to has to come to 1; what is left is then the relative error.

    Args:
        rows: a value for each coefficient; a few of them, since all subsets of ``positive`` are tried.
        weights: what the square of each row's error counts for.
        positive: which coefficients must be 0 or more. The best fit has some of them at 0 and is, in the others,
            the best without the rule (Lawson & Hanson, Solving Least Squares Problems, 23): all subsets are tried.
    """
    targets = [sqrt(weight) for weight in weights]
    rows = [[value * target for value in row] for row, target in zip(rows, targets, strict=True)]
    columns = range(len(rows[0])) if rows else range(0)
    best: Fitted | None = None
    for count in range(len(positive) + 1):
        for out in combinations(positive, count):
            kept = [column for column in columns if column not in out]
            solved = _solved([[row[column] for column in kept] for row in rows], targets)
            if solved is None:
                continue
            coefficients = [0.0] * len(columns)
            for column, value in zip(kept, solved, strict=True):
                coefficients[column] = value
            if any(coefficients[column] < 0 for column in positive):
                continue
            rest = sum(
                (target - sum(c * x for c, x in zip(coefficients, row, strict=True))) ** 2
                for row, target in zip(rows, targets, strict=True)
            )
            if best is None or rest < best.rest:
                best = Fitted(tuple(coefficients), rest)
    return best


def _solved(rows: Sequence[Sequence[float]], targets: Sequence[float]) -> list[float] | None:
    """By modified Gram-Schmidt, which bears columns of very different sizes."""
    width = len(rows[0]) if rows else 0
    if not 0 < width <= len(rows):
        return None
    columns = [[row[column] for row in rows] for column in range(width)]
    rest, upper, shares = list(targets), [[0.0] * width for _ in range(width)], [0.0] * width
    for at, column in enumerate(columns):
        size = sqrt(sum(value * value for value in column))
        for before in range(at):
            upper[before][at] = sum(q * value for q, value in zip(columns[before], column, strict=True))
            column[:] = [value - upper[before][at] * q for q, value in zip(columns[before], column, strict=True)]
        upper[at][at] = sqrt(sum(value * value for value in column))
        if upper[at][at] <= _SINGULAR * size:
            return None
        column[:] = [value / upper[at][at] for value in column]
        shares[at] = sum(q * value for q, value in zip(column, rest, strict=True))
        rest = [value - shares[at] * q for q, value in zip(column, rest, strict=True)]
    solved = [0.0] * width
    for at in reversed(range(width)):
        later = sum(upper[at][after] * solved[after] for after in range(at + 1, width))
        solved[at] = (shares[at] - later) / upper[at][at]
    return solved
