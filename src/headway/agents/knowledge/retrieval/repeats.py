"""Repeats: passages that say the same in the same words, such as a page that is kept in two folders."""

from collections.abc import Sequence
from typing import Final

from headway.agents.knowledge.retrieval.terms import WORD

RUN: Final = 3
"""Words in a row that are compared."""
ALIKE: Final = 0.8
"""The share of runs in common (Jaccard) from which two passages count as one. A changed figure keeps only short ones
apart, so a repeat is not thrown away: its source is named beside the one that is shown."""


def without_repeats(texts: Sequence[str], most: int) -> list[tuple[int, tuple[int, ...]]]:
    """The first ``most`` texts that do not repeat one before, each with those that repeat it; by their index.

    Repeats are looked for among all ``texts``.
    """
    kept: list[tuple[int, frozenset[tuple[str, ...]], list[int]]] = []
    for at, text in enumerate(texts):
        runs = _runs(text)
        first = next((repeats for _, known, repeats in kept if _alike(runs, known)), None)
        if first is not None:
            first.append(at)
        elif len(kept) < most:
            kept.append((at, runs, []))
    return [(at, tuple(repeats)) for at, _, repeats in kept]


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = WORD.findall(text.casefold())
    return frozenset(tuple(words[at : at + RUN]) for at in range(max(1, len(words) - RUN + 1)))


def _alike(one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]]) -> bool:
    return len(one & two) >= ALIKE * len(one | two)
