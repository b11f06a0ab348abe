"""The knee of a throughput curve: the width beyond which more at once brings no more, by the fit that is nearer.

Two shapes are tried: the universal scalability law, for what gets into each other's way, and two straight lines, for a
fixed number of places. Kneedle is not: on such curves it answers with a place that depends on how far was measured.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.trace.scaling.curve import Point
from headway.trace.scaling.segments import Segments, fit_segments
from headway.trace.scaling.usl import Usl, fit_usl

SHARE: Final = 0.95
"""Of the highest rate: the width that reaches it is wide enough. The last 20th often takes half of all width."""


class Knee(Struct, frozen=True, kw_only=True):
    """What a curve says about how wide to go."""

    width: int
    """The least at which the fit reaches 95 % of the most that it reaches anywhere in the range; never beyond that."""
    rate: float
    """What the fit expects there, in the unit of the points."""
    fit: Usl | Segments
    lowest: float
    """The narrowest width that was measured..."""
    highest: float
    """...and the widest."""

    @property
    def peak(self) -> float | None:
        """Where the rate is highest; ``None``: not within the range, where it still rises at the end or is flat."""
        match self.fit:
            case Usl(peak=peak):
                return peak if peak is not None and peak <= self.highest else None
            case Segments(bend=bend, after=after):
                return bend if after < 0 else None

    def __str__(self) -> str:
        """In words."""
        seen = f"{self.lowest:.3g} to {self.highest:.3g} at once were measured"
        match self.fit:
            case Segments(bend=bend):
                shape = f"more brings hardly any more from {bend:.3g} on, as where there are so many places"
            case Usl() if self.peak is None:
                shape = "no peak in range"
            case Usl():
                shape = f"the peak is at {self.peak:.3g}"
        return f"{seen}; {shape}; {self.width} at once reach {SHARE:.0%} of the most"


def knee(points: Sequence[Point]) -> Knee | None:
    """The knee of a curve; ``None`` for fewer than four widths, which tell no shape."""
    usl, segments = fit_usl(points), fit_segments(points)
    fits: list[Usl | Segments] = [fitted for fitted in (usl, segments) if fitted is not None]
    if not fits:
        return None
    best = min(fits, key=lambda fitted: fitted.error)
    lowest, highest = min(point.width for point in points), max(point.width for point in points)
    widths = range(max(1, round(lowest)), max(1, int(highest)) + 1)
    enough = SHARE * max(best.rate(width) for width in widths)
    width = next(width for width in widths if best.rate(width) >= enough)
    return Knee(width=width, rate=best.rate(width), fit=best, lowest=lowest, highest=highest)
