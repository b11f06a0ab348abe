"""Why a limit stops a call: which one, its value, its use, and when it frees."""

from math import ceil, inf
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
    "task": "",
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
    """Settled, by all workers; of a rate, with what calls under way have reserved of it."""
    reserved: int
    """By calls under way, and by workers in advance."""
    need: int
    wait: float | None
    """Seconds until it is worth trying again; ``None``: the same call will never do."""
    frees_at: float | None = None
    """When the window is over, where it ends at a known time; epoch seconds."""

    @property
    def seconds(self) -> int | None:
        """``wait`` in whole seconds, as the caller is told; never too few."""
        return None if self.wait is None else max(ceil(self.wait), 1)

    def told(self) -> str:
        """All of it in one sentence or two."""
        limit = f"The {self.owner} has a limit of {shown(self.stop, self.measure)}{_WINDOWS[self.window]}"
        sized = self.measure in {"tokens", "money"}
        need = shown(self.need, self.measure)
        match self.why:
            case "price_unknown":
                return (
                    f"{limit}, and the price of this model is unknown. Give its price in [prices] of the configuration."
                )
            case "too_large" if sized:
                return f"{limit}; this call alone may use {need}. Lower its max_tokens, or raise the limit."
            case "too_large":
                return f"{limit}, which lets no call through. Raise the limit."
            case "used" | "reserved":
                this = f"; this call may use {need}" if sized else ""
                return f"{limit}{self._state()}{this}. {self._when()}"

    def _state(self) -> str:
        used = f": {self._are(self.used)} used"
        if self.measure == "concurrency":
            return ", and all are taken"
        if self.why == "reserved":
            return f"{used} and {self._are(self.reserved)} reserved by calls under way"
        return f"{used}, or reserved by calls under way" if self._mixed else used

    def _when(self) -> str:
        if self.wait is None:
            return "No wait frees any: end the task, or raise the limit."
        again = f"try again in {self.seconds} s"
        if self.why == "reserved":
            return f"When they end is not known: {again}."
        return f"{again.capitalize()}, or sooner if those end with less." if self._mixed else f"{again.capitalize()}."

    @property
    def _mixed(self) -> bool:
        """What was used of it cannot be told from what is reserved."""
        return self.window == "minute" and self.measure == "tokens"

    def _are(self, amount: int) -> str:
        return f"{shown(amount, self.measure)} {'is' if amount == 1 and self.measure != 'money' else 'are'}"


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
