"""Limits on what a caller or a task may use: a level that warns, a level that stops."""

import re
from typing import Final, Literal

from msgspec import Struct

from headway.core.budget import money as read_money
from headway.core.budget import seconds as read_seconds
from headway.core.errors import BadInputError

Measure = Literal["requests", "tokens", "money", "concurrency", "calls", "seconds"]
"""What is counted; money in micro-USD, everything else in its own unit."""
Window = Literal[
    "minute",  # any 60 seconds
    "day",  # of the UTC calendar
    "month",  # of the UTC calendar
    "now",  # at one moment
    "task",  # from a task's first call to its last
]


class Limit(Struct, frozen=True):
    """Use may reach ``stop`` and never pass it; reaching ``warn`` is told and stops nothing."""

    stop: int
    warn: int | None = None


class CallerLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all calls of one key, or of all of a tenant's keys, may use together; ``None``: not limited."""

    requests_per_minute: Limit | None = None
    tokens_per_minute: Limit | None = None
    """Input and output."""
    concurrency: Limit | None = None
    """Calls under way at once."""
    money_per_day: Limit | None = None
    money_per_month: Limit | None = None


class TaskLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What any one task may use; ``None``: not limited."""

    calls: Limit | None = None
    """Cap on an agent's iterations."""
    tokens: Limit | None = None
    money: Limit | None = None
    seconds: Limit | None = None
    """From its first call on."""


CALLER_LIMITS: Final[dict[str, tuple[Measure, Window]]] = {
    "requests_per_minute": ("requests", "minute"),
    "tokens_per_minute": ("tokens", "minute"),
    "concurrency": ("concurrency", "now"),
    "money_per_day": ("money", "day"),
    "money_per_month": ("money", "month"),
}
TASK_LIMITS: Final[dict[str, tuple[Measure, Window]]] = {
    "calls": ("calls", "task"),
    "tokens": ("tokens", "task"),
    "money": ("money", "task"),
    "seconds": ("seconds", "task"),
}

_COUNT: Final = re.compile(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kM]?)")
_FACTORS: Final = {"": 1, "k": 1_000, "M": 1_000_000}
_SPLIT: Final = re.compile(r"\s*,?\s*warn(?:\s+at)?\s+")
_MOST: Final = 2**53
"""What every store and every JSON reader can hold exactly."""
_FIX: Final = 'Write e.g. 60, 100k, "5 USD" or "120 s"; with a level that warns: "5 USD warn 4 USD".'


def read_limit(value: str | float, measure: Measure, where: str) -> Limit:
    """A limit as a person writes it: ``60``, ``"100k"``, ``"5 USD"``, ``"2 min"``, ``"5 USD warn 4 USD"``.

    Args:
        value: the text; a bare number is in US dollars, seconds or pieces.
        measure: what it limits.
        where: what to call it in errors.

    Raises:
        BadInputError: no number, another unit, negative, beyond 2^53, or it warns only after it stops.
    """
    levels = _SPLIT.split(value.strip()) if isinstance(value, str) else [value]
    if len(levels) > 2:  # noqa: PLR2004 - one that stops, one that warns
        raise BadInputError(f"{where} is {value!r}, which has more than two levels.", fix=_FIX)
    read = [_amount(level, measure, where) for level in levels]
    if len(read) == 1:
        return Limit(read[0])
    if read[1] > read[0]:
        raise BadInputError(f"{where} is {value!r}: it would warn only after it has stopped.", fix=_FIX)
    return Limit(read[0], read[1])


def _amount(value: str | float, measure: Measure, where: str) -> int:
    plain = _number(value)
    match measure:
        case "money":
            found = read_money(value if plain is None else plain, where)
        case "seconds":
            found = _whole(read_seconds(value if plain is None else plain, where), value, where)
        case "requests" | "tokens" | "concurrency" | "calls":
            found = _count(value, where)
    if found > _MOST:
        raise BadInputError(f"{where} is {value!r}, which is beyond what can be counted.", fix=_FIX)
    return found


def _number(value: str | float) -> float | None:
    """A bare number, which needs no unit; ``None``: it is something else."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return None


def _count(value: str | float, where: str) -> int:
    match = _COUNT.fullmatch(str(value).strip())
    if match is None:
        raise BadInputError(f"{where} is {value!r}, which is no count.", fix=_FIX)
    return _whole(float(match[1]) * _FACTORS[match[2]], value, where)


def _whole(found: float, value: str | float, where: str) -> int:
    if found != int(found):
        raise BadInputError(f"{where} is {value!r}, which is no whole number.", fix=_FIX)
    return int(found)


def shown(amount: int, measure: Measure) -> str:
    """An amount as a person reads it: ``5.00 USD``, ``90 s``, ``100,000 tokens``."""
    match measure:
        case "money":
            exact = f"{amount / 1_000_000:.6f}".rstrip("0")
            whole, _, rest = exact.partition(".")
            return f"{whole}.{rest:0<2} USD"
        case "seconds":
            return f"{amount:,} s"
        case "concurrency":
            return f"{amount:,} calls at once" if amount != 1 else "1 call at once"
        case "requests" | "tokens" | "calls":
            return f"{amount:,} {measure if amount != 1 else measure[:-1]}"
