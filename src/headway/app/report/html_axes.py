"""Axes of charts: from values to places in a drawing, and round numbers to mark on the way."""

from collections.abc import Sequence
from math import ceil, floor, log10

from msgspec import Struct

WIDTH, HEIGHT = 480.0, 270.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 468.0, 16.0, 222.0
"""Edges of what lies between the axes, in a drawing of `WIDTH` by `HEIGHT`."""
WIDE = 30.0
"""From this ratio of largest to smallest on, an axis is logarithmic, so that the small are seen too."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS = 5


class Tick(Struct, frozen=True):
    """A mark on an axis."""

    at: float
    label: str


class Axis(Struct, frozen=True, kw_only=True):
    """From ``low`` at ``first`` to ``high`` at ``last``."""

    title: str
    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value is; what lies outside is at the edge."""
        share = log10(value / self.low) / log10(self.high / self.low) if self.log else self._share(value)
        return self.first + min(max(share, 0.0), 1.0) * (self.last - self.first)

    def _share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Marks at round numbers."""
        return tuple(Tick(self.at(value), _label(value)) for value in _round(self.low, self.high, log=self.log))


def across(title: str, low: float, high: float, *, log: bool = False) -> Axis:
    """The axis below the drawing."""
    return Axis(title=title, low=low, high=high, first=LEFT, last=RIGHT, log=log)


def upwards(title: str, high: float) -> Axis:
    """The axis left of the drawing, from 0."""
    return Axis(title=title, low=0.0, high=high if high > 0 else 1.0, first=BOTTOM, last=TOP)


def _round(low: float, high: float, *, log: bool) -> Sequence[float]:
    if log:
        decades = range(floor(log10(low)), ceil(log10(high)) + 1)
        parts = (1.0, 2.0, 5.0) if len(decades) <= 3 else (1.0,)  # noqa: PLR2004 - more would not be told apart
        return [value for decade in decades for part in parts if low <= (value := part * 10.0**decade) <= high]
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    return [number * step for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"  # noqa: PLR2004 - from here on with separators
