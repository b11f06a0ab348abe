"""When tasks arrive: all that a load can do, as offsets in seconds from its beginning.

An open load does not wait for answers: its times are fixed before it begins. A closed one has so many tasks under way
and begins another whenever one ends.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import cos, pi
from random import Random
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError


class Closed(Struct, frozen=True):
    """So many at a time."""

    tasks: int


class Open(Struct, frozen=True):
    """Times that do not depend on answers."""

    written: str
    times: Callable[[Random], Iterator[float]]
    """Ascending offsets in seconds; without end unless replayed."""
    rate: float | None
    """Tasks per second where that is one number."""


Arrivals = Closed | Open

_NUMBER: Final = r"(\d+(?:\.\d+)?)"
_RATE: Final = _NUMBER + r"/s"
_SECONDS: Final = _NUMBER + r"s"


def _constant(rate: float) -> Open:
    def times(_: Random) -> Iterator[float]:
        number = 0
        while True:
            yield number / rate
            number += 1

    return Open(f"constant {rate:g}/s", times, rate)


def _poisson(rate: float) -> Open:
    def times(dice: Random) -> Iterator[float]:
        at = 0.0
        while True:
            at += dice.expovariate(rate)
            yield at

    return Open(f"poisson {rate:g}/s", times, rate)


def _gamma(rate: float, cv: float) -> Open:
    """Gaps of a gamma distribution, mean 1/rate, coefficient of variation ``cv``: above 1 they come in bursts."""
    shape = 1 / cv**2

    def times(dice: Random) -> Iterator[float]:
        at = 0.0
        while True:
            at += dice.gammavariate(shape, 1 / (rate * shape))
            yield at

    return Open(f"gamma {rate:g}/s cv {cv:g}", times, rate)


def _varying(written: str, most: float, rate_at: Callable[[float], float]) -> Open:
    """A Poisson process whose rate changes: candidates at the highest rate, thinned (Lewis & Shedler 1979)."""

    def times(dice: Random) -> Iterator[float]:
        at = 0.0
        while True:
            at += dice.expovariate(most)
            if dice.random() * most < rate_at(at):
                yield at

    return Open(written, times, None)


def _ramp(low: float, high: float, seconds: float) -> Open:
    def rate_at(at: float) -> float:
        return low + (high - low) * min(at / seconds, 1.0)

    return _varying(f"ramp {low:g}/s {high:g}/s over {seconds:g}s", max(low, high), rate_at)


def _spike(low: float, high: float, begins: float, seconds: float) -> Open:
    def rate_at(at: float) -> float:
        return high if begins <= at < begins + seconds else low

    written = f"spike {low:g}/s {high:g}/s at {begins:g}s for {seconds:g}s"
    return _varying(written, max(low, high), rate_at)


def _diurnal(low: float, high: float, period: float) -> Open:
    def rate_at(at: float) -> float:
        return low + (high - low) * (1 - cos(2 * pi * at / period)) / 2

    return _varying(f"diurnal {low:g}/s {high:g}/s period {period:g}s", max(low, high), rate_at)


_FORMS: Final[tuple[tuple[str, re.Pattern[str], Callable[..., Open]], ...]] = (
    ("constant 5/s", re.compile(f"constant {_RATE}"), _constant),
    ("poisson 5/s", re.compile(f"poisson {_RATE}"), _poisson),
    ("gamma 5/s cv 3", re.compile(f"gamma {_RATE} cv {_NUMBER}"), _gamma),
    ("ramp 1/s 20/s over 60s", re.compile(f"ramp {_RATE} {_RATE} over {_SECONDS}"), _ramp),
    ("spike 5/s 400/s at 30s for 10s", re.compile(f"spike {_RATE} {_RATE} at {_SECONDS} for {_SECONDS}"), _spike),
    ("diurnal 1/s 20/s period 3600s", re.compile(f"diurnal {_RATE} {_RATE} period {_SECONDS}"), _diurnal),
)
_CLOSED: Final = re.compile(r"closed (\d+)")
FORMS: Final = ("closed 8", *(form for form, _, _ in _FORMS))
"""An example of each way to write arrivals."""


def arrivals(text: str) -> Arrivals:
    """Read what `FORMS` shows.

    Raises:
        BadInputError: it is none of them, or a number in it is 0.
    """
    text = " ".join(text.split())
    if (closed := _CLOSED.fullmatch(text)) is not None and int(closed[1]) > 0:
        return Closed(int(closed[1]))
    for _, pattern, make in _FORMS:
        if (found := pattern.fullmatch(text)) is not None:
            numbers = [float(number) for number in found.groups()]
            if all(number > 0 for number in numbers):
                return make(*numbers)
    raise BadInputError(
        f"{text!r} says no arrivals.",
        fix=f"Write one of: {', '.join(FORMS)}; with numbers above 0.",
    )


def replayed(times: tuple[float, ...], written: str) -> Open:
    """The recorded times of arrivals, from the first on.

    Raises:
        BadInputError: they run backwards.
    """
    if any(later < earlier for earlier, later in pairwise(times)):
        raise BadInputError(f"{written}: arrivals run backwards.", fix="Sort them by time.")
    first = times[0] if times else 0.0
    return Open(written, lambda _: (at - first for at in times), None)
