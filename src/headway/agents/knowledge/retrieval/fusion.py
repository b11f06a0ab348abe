"""Reciprocal rank fusion: one ranking out of several whose scores cannot be compared."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

T = TypeVar("T", bound=Hashable)

SMOOTHING: Final = 60
"""The constant of Cormack, Clarke and Büttcher (SIGIR 2009): how little the first ranks stand out from the next."""


def fuse(rankings: Sequence[Sequence[T]]) -> list[T]:
    """All that any ranking names, best first: the sum of 1 / (60 + rank) over the rankings that name it.

    Args:
        rankings: best first, nothing twice. Of equals the one that is named first comes first.
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (SMOOTHING + rank)
    return sorted(scores, key=lambda item: -scores[item])
