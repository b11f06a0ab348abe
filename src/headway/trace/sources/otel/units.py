"""Times written in another unit than their format's: told by their magnitude, and by the times beside them."""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from headway.wire.otel import RawSpan

_SINCE, _UNTIL = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100: no agent's trace lies outside of them."""
_FACTORS: Final = (1e3, 1e6, 1e9, 1e-3, 1e-6)
"""Between the units that times are written in: s, ms, µs and ns."""
_APART: Final = 30 * 86_400.0
"""Seconds that times recorded together may lie apart."""
_AT_ONCE: Final = 0.1
"""Seconds: what is all over in less was not recorded in this unit; a trace on a clock that began with the machine,
whose times lie near 1970 too, lasts longer."""


def rescaled(spans: Sequence[RawSpan]) -> list[int]:
    """Write the times of spans, in seconds, anew where they were read in the wrong unit; which spans those are.

    A time outside of the years 2000 to 2100 is taken for one in another unit where that brings it into them: and there
    near the other times recorded with it, or, where none of these is plausible as it is, if all are wrong by the same
    factor. What may as well be a clock that does not count from 1970 stays as it is.
    """
    times = [span.start for span in spans]
    times += [span.end for span in spans if span.end is not None]
    if not times or (min(times) >= _SINCE and max(times) < _UNTIL):
        return []
    sound = [time for time in times if _SINCE <= time < _UNTIL]
    if not sound:
        factors = {_factor(time) for time in times}
        if len(factors) != 1 or (max(factors) > 1 and max(times) - min(times) > _AT_ONCE):
            return []
        low, high = _SINCE, _UNTIL
    else:
        low, high = min(sound) - _APART, max(sound) + _APART
    return [i for i, span in enumerate(spans) if _rescale(span, low, high)]


def _factor(time: float) -> float:
    """By which a time comes into the years of agents; 1 where none does."""
    return next((factor for factor in _FACTORS if _SINCE <= time * factor < _UNTIL), 1.0)


def _rescale(span: RawSpan, low: float, high: float) -> bool:
    def right(time: float) -> float:
        there = time * _factor(time)
        return time if _SINCE <= time < _UNTIL or not low <= there <= high else there

    before = span.start, span.end
    span.start = right(span.start)
    span.end = None if span.end is None else right(span.end)
    if before == (span.start, span.end):
        return False
    span.events = [
        event if event.time is None else structs.replace(event, time=right(event.time)) for event in span.events
    ]
    return True
