"""Times as products write them, to epoch seconds."""

from datetime import UTC, datetime
from typing import Final

_SCALES: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Above which epoch number it counts ns, µs, ms. Seconds reach the smallest of these in the year 5138."""
_MOST: Final = 1e19
"""Nanoseconds reach it in 2286; what is above is no time."""


def instant(value: object) -> float | None:
    """Epoch seconds of an ISO 8601 text, or of an epoch number in s, ms, µs or ns; ``None`` where it is neither.

    A text without a zone is taken to be in UTC. The unit of a number is decided by its magnitude, for which the years
    from 1973 to 5138 leave no room for doubt.
    """
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 < value < _MOST:
        return None
    return next((value * unit for above, unit in _SCALES if value >= above), float(value))
