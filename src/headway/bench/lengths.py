"""How long prompts and answers are, and how long tools take: numbers, or distributions of them."""

import re
from collections.abc import Callable
from math import exp, log
from random import Random
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError

_NUMBER: Final = r"\d+(?:\.\d+)?"
_SPREAD: Final = re.compile(rf"(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})")
_ABOUT: Final = re.compile(rf"~(?P<median>{_NUMBER})(?:x(?P<factor>{_NUMBER}))?")
_FACTOR: Final = 2.0


class Length(Struct, frozen=True):
    """A distribution that can be drawn from, and how it was written."""

    written: str
    draw: Callable[[Random], float]
    mean: float

    def whole(self, dice: Random) -> int:
        """A draw as a whole number, at least 1."""
        return max(1, round(self.draw(dice)))


def length(text: str, what: str) -> Length:
    """Read ``512``, ``200..800`` (evenly between) or ``~500x3`` (log-normal: median, and what two thirds lie within).

    Args:
        text: as above; ``~500`` is ``~500x2``.
        what: what it is the length of, for the error.

    Raises:
        BadInputError: it is none of these.
    """
    text = text.strip()
    try:
        if (spread := _SPREAD.fullmatch(text)) is not None:
            low, high = float(spread["low"]), float(spread["high"])
            if low <= high:
                return Length(text, lambda dice: dice.uniform(low, high), (low + high) / 2)
        elif (about := _ABOUT.fullmatch(text)) is not None:
            median, factor = float(about["median"]), float(about["factor"] or _FACTOR)
            if median > 0 and factor >= 1:
                mu, sigma = log(median), log(factor)
                return Length(text, lambda dice: dice.lognormvariate(mu, sigma), exp(mu + sigma * sigma / 2))
        else:
            value = float(text)
            if 0 <= value < float("inf"):
                return Length(text, lambda _: value, value)
    except ValueError:
        pass
    raise BadInputError(
        f"{what} is {text!r}, which is no length.",
        fix="Write a number (512), a range (200..800), or a median with a factor (~500x3) that is at least 1.",
    )
