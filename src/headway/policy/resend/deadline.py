"""A deadline on its way through: what is left of it for each call, and how it is written for the next hop."""

from typing import Final

HEADER: Final = "x-headway-timeout-ms"
"""Milliseconds that are left, not a time of day: no clocks have to agree."""
_FOREVER: Final = 86_400_000


def read(value: str | None, now: float) -> float | None:
    """The deadline in epoch seconds of a request that came at ``now``; ``None``: it has none that can be read."""
    if value is None or not value.strip().isdecimal():
        return None
    left = int(value.strip()[:12])
    return now + left / 1000 if left <= _FOREVER else None


def write(deadline: float, now: float, margin: float = 0.0) -> str:
    """What is left of ``deadline`` at ``now`` for who is asked next, less ``margin`` seconds for the way back."""
    return str(max(0, int((deadline - now - margin) * 1000)))


def timeout(deadline: float | None, now: float, limit: float) -> float:
    """Seconds that a call may take: ``limit``, or less where the deadline comes earlier; never negative."""
    return limit if deadline is None else max(0.0, min(limit, deadline - now))
