"""The throughput curve: how much work is done a second while so many calls are under way."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from statistics import fmean, median
from typing import Final

from msgspec import Struct

_SHARE: Final = 0.01
_LENGTHS: Final = 10


class Point(Struct, frozen=True):
    """What was measured at one width."""

    width: float
    """Calls under way at once, on average."""
    rate: float
    """What was done a second."""
    seconds: float = 1.0
    """How long that was measured: its weight."""


class Stretch(Struct, frozen=True):
    """A piece of work that was under way from ``start`` to ``end``, in seconds."""

    start: float
    end: float
    work: float
    """How much of it there was, in whatever unit; it is taken to be done evenly."""


def crowding(stretches: Sequence[Stretch]) -> list[float]:
    """How many were under way, on average, while each of them was, itself among them."""
    edges = sorted({moment for piece in stretches for moment in (piece.start, piece.end)})
    steps = Counter(piece.start for piece in stretches)
    steps.subtract(piece.end for piece in stretches)
    behind: dict[float, float] = {}
    width, seconds = 0, 0.0
    for moment, after in zip_longest(edges, edges[1:]):
        behind[moment] = seconds
        width += steps[moment]
        seconds += width * ((moment if after is None else after) - moment)
    return [
        (behind[piece.end] - behind[piece.start]) / (piece.end - piece.start) if piece.end > piece.start else 1.0
        for piece in stretches
    ]


def curve(stretches: Iterable[Stretch]) -> tuple[Point, ...]:
    """Mean rate by how many stretches were under way, a point for each width of 1, 2, 3, … rounded.

    Time is cut where nothing is under way, and else after ten times as long as a stretch mostly takes. Of each piece
    the mean width and the work are taken together: what waits at its beginning is done before its end, so a piece as
    long as that tells what is done at its width, where a moment would not. Widths of less than 1 % of all time are left
    out.
    """
    pieces = [piece for piece in stretches if piece.end > piece.start and piece.work > 0]
    if not pieces:
        return ()
    longest = _LENGTHS * median(piece.end - piece.start for piece in pieces)
    sums: dict[int, list[float]] = {}
    for seconds, waited, done in _cut(pieces, longest):
        held = sums.setdefault(round(waited / seconds), [0.0, 0.0, 0.0])
        held[:] = [held[0] + seconds, held[1] + waited, held[2] + done]
    least = _SHARE * sum(seconds for seconds, _, _ in sums.values())
    return tuple(
        Point(waited / seconds, done / seconds, seconds)
        for _, (seconds, waited, done) in sorted(sums.items())
        if seconds >= least
    )


def _cut(pieces: Sequence[Stretch], longest: float) -> Iterator[tuple[float, float, float]]:
    """Of each piece of time its seconds, the seconds that stretches were under way in it, and the work done."""
    rates = [(piece, piece.work / (piece.end - piece.start)) for piece in pieces]
    edges = sorted(edge for piece, rate in rates for edge in ((piece.start, 1, rate), (piece.end, -1, -rate)))
    width, rate, since = 0, 0.0, edges[0][0]
    seconds = waited = done = 0.0
    for at, step, change in edges:
        if width:
            seconds, waited, done = seconds + at - since, waited + width * (at - since), done + rate * (at - since)
        width, rate, since = width + step, rate + change if width + step else 0.0, at
        if seconds and (not width or seconds >= longest):
            yield seconds, waited, done
            seconds = waited = done = 0.0


def weights(points: Sequence[Point]) -> list[float]:
    """What each point counts for, 1 on average: by how long it was measured."""
    mean = fmean(point.seconds for point in points)
    return [point.seconds / mean for point in points]
