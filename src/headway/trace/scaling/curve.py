"""The throughput curve: how much work is done a second while so many calls are under way."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

from msgspec import Struct

_SHARE: Final = 0.01
"""Of all measured time: a width that was seen for less is a passage from one to another."""


class Point(Struct, frozen=True):
    """What was measured at one width."""

    width: float
    """Calls under way at once."""
    rate: float
    """What is done a second."""


class Stretch(Struct, frozen=True):
    """A piece of work that was under way from ``start`` to ``end``, in seconds."""

    start: float
    end: float
    work: float
    """How much of it there was, in whatever unit; it is taken to be done evenly."""


def curve(stretches: Iterable[Stretch]) -> tuple[Point, ...]:
    """Mean rate at each number of stretches under way, for the widths that were there for 1 % of the time or more.

    A stretch whose width changes while it is under way tells a little of its speed at the one to the other, so a curve
    is sharpest where the width stood still for as long as many calls took.
    """
    edges = sorted(
        edge
        for piece in stretches
        if piece.end > piece.start and piece.work > 0
        for rate in [piece.work / (piece.end - piece.start)]
        for edge in ((piece.start, 1, rate), (piece.end, -1, -rate))
    )
    seconds: dict[int, float] = {}
    done: dict[int, float] = {}
    width, rate, since = 0, 0.0, 0.0
    for at, group in groupby(edges, key=itemgetter(0)):
        if width:
            seconds[width] = seconds.get(width, 0.0) + at - since
            done[width] = done.get(width, 0.0) + rate * (at - since)
        for _, step, change in group:
            width += step
            rate += change
        since = at
    least = _SHARE * sum(seconds.values())
    return tuple(Point(n, done[n] / seconds[n]) for n in sorted(seconds) if seconds[n] >= least and done[n] > 0)
