"""Why a limit stops a call: which one, its value, its use, and when it frees."""

from math import inf
from typing import Final, Literal

from msgspec import Struct

from headway.core.limits import Measure, Window, shown
from headway.policy.limits.counter import Counter

_SOON: Final = 1.0
"""Seconds to wait for what calls under way have reserved: when they end is not known."""

Why = Literal[
    "used",  # what is left is too little
    "reserved",  # it would be enough, if calls under way had not reserved it
    "too_large",  # this call alone is more than the limit
    "price_unknown",  # what the call costs cannot be known, so a limit on money cannot be held
]
_WINDOWS: Final[dict[Window, str]] = {
    "minute": " a minute",
    "day": " a day",
    "month": " a month",
    "now": "",
    "task": " a task",
}


class Refused(Struct, frozen=True, kw_only=True):
    """A call that is not to be made. Amounts are in the measure's unit, money in micro-USD."""

    why: Why
    counter: str
    owner: str
    """``key k1``, ``tenant acme``, ``task 3f2a``."""
    measure: Measure
    window: Window
    stop: int
    used: int
    """Settled, by all workers."""
    reserved: int
    """By calls under way, and by workers in advance."""
    need: int
    wait: float | None
    """Seconds until it is worth trying again; ``None``: the same call will never do."""
    frees_at: float | None = None
    """When the window is over, where it ends at a known time; epoch seconds."""

    def told(self) -> str:
        """All of it in one sentence or two."""
        limit = f"The {self.owner} has a limit of {shown(self.stop, self.measure)}{_WINDOWS[self.window]}"
        need = shown(self.need, self.measure)
        match self.why:
            case "price_unknown":
                return (
                    f"{limit}, and the price of this model is unknown. Give its price in [prices] of the configuration."
                )
            case "too_large":
                return f"{limit}; this call alone may use {need}. Lower its max_tokens, or raise the limit."
            case "reserved":
                state = (
                    f"{shown(self.used, self.measure)} are used and {shown(self.reserved, self.measure)} are reserved"
                )
                return f"{limit}: {state} by calls under way; this call may use {need}. {self._when()}"
            case "used":
                return f"{limit}: {shown(self.used, self.measure)} are used; this call may use {need}. {self._when()}"

    def _when(self) -> str:
        if self.wait is None:
            return "It frees for no wait: end the task, or raise the limit."
        return f"Try again in {max(round(self.wait + 0.5), 1)} s."


def refusal(counter: Counter, need: int, stop: int, wall: float) -> Refused:
    """Why ``need`` cannot be had from a counter whose standing is fresh.

    Args:
        counter: the one that has too little.
        need: what the call may use.
        stop: the limit.
        wall: epoch seconds.
    """
    why, wait = _reason(counter, need, stop, wall)
    return Refused(
        why=why,
        counter=counter.name,
        owner=counter.owner,
        measure=counter.measure,
        window=counter.window,
        stop=stop,
        used=counter.used,
        reserved=max(counter.held, 0),
        need=need,
        wait=wait,
        frees_at=counter.ends,
    )


def price_unknown(counter: Counter, stop: int) -> Refused:
    """A limit on money cannot be held for a call whose price nobody knows."""
    return Refused(
        why="price_unknown",
        counter=counter.name,
        owner=counter.owner,
        measure="money",
        window=counter.window,
        stop=stop,
        used=counter.used,
        reserved=counter.held,
        need=0,
        wait=None,
    )


def longest(refusals: list[Refused]) -> Refused:
    """The one that stands in the way longest: whoever waits for less is refused again."""
    return max(refusals, key=lambda one: inf if one.wait is None else one.wait)


def _reason(counter: Counter, need: int, stop: int, wall: float) -> tuple[Why, float | None]:
    if need > stop:
        return "too_large", None
    match counter.kind:
        case "rate":
            return "used", counter.wait if counter.wait is not None else _SOON
        case "gauge":
            return "reserved", _SOON
        case "elapsed":
            return "used", None
        case "total":
            if counter.used + need <= stop:
                return "reserved", _SOON
            return "used", None if counter.ends is None else max(counter.ends - wall, _SOON)
