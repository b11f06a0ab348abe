"""How many tasks at once an endpoint holds: levels of a closed load, and the knee of their curve."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.bench.figures import Figures
from headway.trace.scaling.curve import Point
from headway.trace.scaling.knee import Knee, knee

ENOUGH: Final = 0.95
"""Of the tasks that have to keep all SLOs: then their p95 does."""


class Level(Struct, frozen=True, kw_only=True):
    """So many tasks at once, and what came of it."""

    tasks: int
    figures: Figures
    troubles: tuple[str, ...]

    @property
    def kept(self) -> bool | None:
        """Whether enough tasks kept all SLOs; ``None``: there are none, or no task ended."""
        share = self.figures.attained
        return None if share is None else share.good / share.of >= ENOUGH


class Swept(Struct, frozen=True, kw_only=True):
    """All levels, and what they say together."""

    levels: tuple[Level, ...]
    """In the order of their tasks; those that the client spoiled are not used below."""
    knee: Knee | None
    """Of tasks per second; ``None``: fewer than four levels can be used."""
    most: int | None
    """The most tasks at once that kept all SLOs, below all that did not; ``None``: none did, or there are no SLOs."""
    beyond: int | None
    """The fewest that did not; ``None``: none was found, so more may be held than was tried."""


def swept(levels: Sequence[Level]) -> Swept:
    """What ``levels`` say."""
    ordered = sorted(levels, key=lambda level: level.tasks)
    usable = [level for level in ordered if not level.troubles]
    points = [Point(level.tasks, level.figures.tasks_per_second) for level in usable if level.figures.tasks]
    most, beyond = _border(usable)
    return Swept(levels=tuple(ordered), knee=knee(points), most=most, beyond=beyond)


def between(levels: Sequence[Level]) -> int | None:
    """The level that would tell most about where SLOs cease to be kept; ``None``: that is known, or cannot be.

    Half-way between the most that kept them and the fewest that did not.
    """
    most, beyond = _border([level for level in levels if not level.troubles])
    if beyond is None or beyond - (most or 0) <= 1:
        return None
    return ((most or 0) + beyond) // 2


def _border(levels: Sequence[Level]) -> tuple[int | None, int | None]:
    broken = [level.tasks for level in levels if level.kept is False]
    beyond = min(broken, default=None)
    held = [level.tasks for level in levels if level.kept and (beyond is None or level.tasks < beyond)]
    return max(held, default=None), beyond
