"""Days and months of the UTC calendar, by name.

What was used in a period is kept under the period's name. So a clock that is set back, even across midnight, comes
upon what was used before: nothing is freed and nothing counts twice.
"""

from datetime import UTC, datetime, timedelta

from msgspec import Struct

from headway.core.limits import Window


class Period(Struct, frozen=True):
    """A stretch of time that use is counted in."""

    name: str
    start: float
    """Epoch seconds, like ``end``."""
    end: float


def day_of(wall: float) -> Period:
    """The day that ``wall`` (epoch seconds) is in."""
    start = datetime.fromtimestamp(wall, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Period(start.strftime("%Y-%m-%d"), start.timestamp(), (start + timedelta(days=1)).timestamp())


def month_of(wall: float) -> Period:
    """The month that ``wall`` (epoch seconds) is in."""
    start = datetime.fromtimestamp(wall, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (start + timedelta(days=32)).replace(day=1)
    return Period(start.strftime("%Y-%m"), start.timestamp(), following.timestamp())


def counter_name(scope: str, account: str, measure: str, window: Window, wall: float) -> str:
    """What a counter is called in the book: ``key:k1/money/2026-11-30``."""
    match window:
        case "day":
            label = day_of(wall).name
        case "month":
            label = month_of(wall).name
        case "minute" | "now" | "task":
            label = window
    return f"{scope}:{account}/{measure}/{label}"
