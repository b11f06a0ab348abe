"""The charts of a set: what is drawn where, ready to print as SVG."""

from collections.abc import Sequence

from msgspec import Struct

from headway.app.report.figures import count, per_cent, plural, seconds
from headway.app.report.html_axes import BOTTOM, LEFT, RIGHT, TOP, WIDE, Axis, across, upwards
from headway.app.report.set_figures import PERCENT, binned, with_interval
from headway.trace.facts import CallPoint
from headway.trace.sets import SetAnatomy
from headway.trace.stats import Line, Quantile, rank

_DOTS = 700
"""Calls of the scatter that are drawn, evenly chosen by input tokens."""
_STEPS = 300
"""Steps of the distribution's curve."""
_FAR = 3.0
"""When the largest TTFT is that many times the 99th percentile, the axis ends there and the rest lie at its edge."""


class Box(Struct, frozen=True):
    """A bar of the histogram."""

    x: float
    y: float
    width: float
    height: float
    label: str
    title: str


class Histogram(Struct, frozen=True, kw_only=True):
    """How many tasks have which N."""

    y: Axis
    boxes: tuple[Box, ...]


class Dot(Struct, frozen=True):
    """One call."""

    x: float
    y: float
    known: bool
    """Whether it is known how much of its prompt came from a cache."""
    title: str


class Scatter(Struct, frozen=True, kw_only=True):
    """Reading against waiting, a dot per call."""

    x: Axis
    y: Axis
    dots: tuple[Dot, ...]
    line: tuple[float, float, float, float] | None
    fitted: str | None
    """What the line says."""
    note: str


class Mark(Struct, frozen=True):
    """A quantile on the distribution, with its interval where there is one."""

    x: float
    low: float | None
    high: float | None
    label: str
    title: str


class Distribution(Struct, frozen=True, kw_only=True):
    """Which share of the tasks took how long at most."""

    x: Axis
    y: Axis
    curve: str
    """An SVG path."""
    marks: tuple[Mark, ...]


def histogram(made: SetAnatomy) -> Histogram | None:
    """Tasks by N; ``None`` of no tasks."""
    bins = binned(made.histogram)
    if not bins:
        return None
    y = upwards("tasks", float(max(tasks for _, tasks in bins)))
    width = (RIGHT - LEFT) / len(bins)
    boxes = [
        Box(
            LEFT + i * width + width * 0.1,
            y.at(tasks),
            width * 0.8,
            BOTTOM - y.at(tasks),
            name,
            f"N = {name}: {plural(tasks, 'task')}, {per_cent(tasks / made.tasks)}",
        )
        for i, (name, tasks) in enumerate(bins)
    ]
    return Histogram(y=y, boxes=tuple(boxes))


def scatter(points: Sequence[CallPoint], line: Line | None) -> Scatter | None:
    """Calls by the tokens they computed, as far as that is known; ``None`` of too few calls to see anything.

    Args:
        points: ascending by input tokens.
        line: fitted through those of which it is known.
    """
    if len(points) < 3:  # noqa: PLR2004 - two dots are no picture
        return None
    shown = points if len(points) <= _DOTS else [points[i * len(points) // _DOTS] for i in range(_DOTS)]
    waits = sorted(point.ttft for point in points)
    top = waits[rank(len(waits), 0.99)]
    top = top if waits[-1] > _FAR * top > 0 else waits[-1]
    x = across("input tokens computed: all, less those from a cache", 0.0, max(1.0, *map(_computed, points)))
    y = upwards("TTFT, seconds", top * 1.04)
    note = f"{plural(len(shown), 'call')} drawn" + (f" of {count(len(points))}" if len(shown) < len(points) else "")
    if beyond := sum(wait > y.high for wait in waits):
        note += f"; {plural(beyond, 'call')} waited longer than {seconds(y.high, 1)} and lie at the upper edge"
    if not all(map(_known, points)):
        note += "; hollow: what came from a cache is unknown, so all input tokens are taken"
    return Scatter(
        x=x,
        y=y,
        dots=tuple(Dot(x.at(_computed(one)), y.at(one.ttft), _known(one), _title(one)) for one in shown),
        line=None if line is None else _drawn(line, x, y),
        fitted=None if line is None else fitted(line),
        note=f"{note}.",
    )


def fitted(line: Line) -> str:
    """What a fitted line says of reading."""
    return (
        f"TTFT = {line.intercept:.3f} s + {line.slope * 1000:.3f} s per 1,000 computed tokens"
        f" [{line.slope_low * 1000:.3f}, {line.slope_high * 1000:.3f}], over {plural(line.n, 'call')}"
    )


def distribution(values: Sequence[float], marks: Sequence[Quantile], decimals: int) -> Distribution | None:
    """E2E of the tasks as shares that took that long at most; ``None`` of fewer than two different ones."""
    ordered = sorted(values)
    if not ordered or ordered[0] == ordered[-1]:
        return None
    log = ordered[0] > 0 and ordered[-1] > WIDE * ordered[0]
    x = across("E2E, seconds" + (", logarithmic" if log else ""), ordered[0], ordered[-1], log=log)
    y = Axis(title="share of tasks, %", low=0.0, high=100.0, first=BOTTOM, last=TOP)
    size = len(ordered)
    ranks = sorted({i * (size - 1) // _STEPS for i in range(_STEPS + 1)}) if size > _STEPS else range(size)
    steps = [f"H{x.at(ordered[i]):.1f}V{y.at((i + 1) * 100 / size):.1f}" for i in ranks]
    return Distribution(
        x=x,
        y=y,
        curve=f"M{LEFT:.1f} {BOTTOM:.1f}{''.join(steps)}",
        marks=tuple(_mark(one, x, decimals) for one in marks),
    )


def _mark(one: Quantile, x: Axis, decimals: int) -> Mark:
    value = with_interval(one, lambda value: seconds(value, decimals))
    title = f"{PERCENT[one.q]}: {value}" + ("" if one.supported else ", of too few tasks to be sure")
    low, high = (x.at(one.low), x.at(one.high)) if one.low is not None and one.high is not None else (None, None)
    return Mark(x.at(one.value), low, high, PERCENT[one.q], title)


def _known(point: CallPoint) -> bool:
    return point.cache_read is not None and point.cache_read <= point.input_tokens


def _computed(point: CallPoint) -> int:
    return point.input_tokens - (point.cache_read or 0) if _known(point) else point.input_tokens


def _title(point: CallPoint) -> str:
    cached = f"{count(point.cache_read)} of {count(point.input_tokens)} from a cache"
    known = (
        f"{count(_computed(point))} tokens computed, {cached}" if _known(point) else f"{count(point.input_tokens)} in"
    )
    return f"{known}: TTFT {point.ttft:.3f} s"


def _drawn(line: Line, x: Axis, y: Axis) -> tuple[float, float, float, float] | None:
    """The part of the line that lies between the axes."""
    ends = [x.low, x.high]
    if line.slope:
        ends += [cut for level in (y.low, y.high) if x.low < (cut := (level - line.intercept) / line.slope) < x.high]
    inside = [end for end in ends if y.low - 1e-9 <= line.intercept + line.slope * end <= y.high * (1 + 1e-9)]
    if len(inside) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    first, last = min(inside), max(inside)
    return x.at(first), y.at(line.intercept + line.slope * first), x.at(last), y.at(line.intercept + line.slope * last)
