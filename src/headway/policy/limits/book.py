"""What a worker and the book that all workers share say to each other: one exchange, done wholly or not at all.

A COUNTER is one limit of one account in one window, e.g. ``key:k1/money/2026-11-30``. A HOLDER is a worker: it draws
amounts from counters, holds them, and hands out what it holds. Four kinds of counter:

========= ====================================================================================================
total     adds up and is never given back by time: money of a day, everything of a task
rate      counts what was drawn in any `RATE_SECONDS`
gauge     counts what is under way: concurrency
elapsed   the time since the counter was first asked for: a task's seconds
========= ====================================================================================================
"""

from typing import Final, Literal, Protocol

from msgspec import Struct

Kind = Literal["total", "rate", "gauge", "elapsed"]

RATE_SECONDS: Final = 60
USABLE_SECONDS: Final = 1.0
"""What was drawn from a rate is handed out within this time, or given back: it counts from the end of it."""
LEASE_SECONDS: Final = 30.0
"""A holder that was not heard of for as long holds no part of any gauge any more."""
SHARE: Final = 16
"""A worker draws this part of what is left, so that near a limit nearly nothing lies idle with another worker."""


class Want(Struct, frozen=True):
    """A wish to draw from a counter."""

    counter: str
    kind: Kind
    limit: int
    least: int
    """Below this it is of no use."""
    need: int
    """What waits for it altogether."""


class Held(Struct, frozen=True):
    """What became of amounts drawn earlier from a total or a gauge."""

    counter: str
    kind: Kind
    used: int
    """Settled since the last report; to be added up."""
    held: int
    """What the holder holds now, reserved for calls or free."""


class Correction(Struct, frozen=True):
    """What was drawn from a rate at ``at`` and not used; negative: used in excess."""

    counter: str
    at: int
    unused: int


class Exchange(Struct, frozen=True, kw_only=True):
    """What a worker reports and wishes."""

    number: int
    """Rises by one with each report; a book that has had this number takes the report for done."""
    settled: int
    """How many of its calls a worker has settled up to this report."""
    held: tuple[Held, ...] = ()
    corrections: tuple[Correction, ...] = ()
    warned: tuple[str, ...] = ()
    """Totals that reached their level that warns, as far as this worker knows for the first time."""
    wants: tuple[Want, ...] = ()


class Standing(Struct, frozen=True):
    """The answer to a wish."""

    given: int
    used: int
    """Settled; of a rate: drawn within the window, ``given`` included."""
    held: int
    """By all holders, ``given`` included; 0 for a rate."""
    at: int = 0
    """Of a rate: what a `Correction` names it by."""
    wait: float | None = None
    """Of a rate that gave too little: seconds until ``least`` can be had; ``None``: never, or not by time alone."""
    age: float = 0.0
    """Of a counter of elapsed time: seconds since its beginning."""


class Reply(Struct, frozen=True):
    """The answer to an exchange."""

    standings: tuple[Standing, ...]
    """One for each wish, in order."""
    first: tuple[str, ...] = ()
    """Of ``warned`` those that no other worker had told of before."""


class Use(Struct, frozen=True):
    """Where a total stands, for a person."""

    used: int
    held: int


class Book(Protocol):
    """The truth about all counters, shared by all workers. Every method is one atomic step.

    Any of them may raise `StoreError`: then nothing is known to have happened, and the same may be said again.
    """

    def join(self, holder: str) -> None:
        """A worker begins."""
        ...

    def exchange(self, holder: str, exchange: Exchange) -> Reply:
        """Take a report, then answer wishes in order.

        Raises:
            LeftError: the holder's account was closed, so what it holds is nobody's.
        """
        ...

    def settled(self, holder: str) -> int | None:
        """How many settlements of this holder are in the book; ``None``: it has left."""
        ...

    def leave(self, holder: str, charges: dict[str, int]) -> bool:
        """A worker has ended: charge what it had not reported, give back the rest. False: it had left already."""
        ...

    def uses(self, counters: tuple[str, ...]) -> tuple[Use, ...]:
        """Where totals stand."""
        ...

    def forget(self, untouched: float) -> None:
        """Forget totals that nothing was added to for so many seconds: days, months and tasks that are long over."""
        ...

    def close(self) -> None:
        """Let go of whatever it is kept in."""
        ...


class LeftError(Exception):
    """The book has closed this holder's account."""


def portion(left: int, least: int, need: int) -> int:
    """How much to give of what is left: what is needed, or a share if that is more; nothing if it were of no use."""
    if left < least:
        return 0
    return min(left, max(need, left // SHARE))


def counted_at(now: float) -> int:
    """The second that what is drawn at ``now`` counts from: the last in which it can be handed out."""
    return int(now + USABLE_SECONDS) + 1


def rate_wait(slots: list[tuple[int, int]], missing: int, now: float) -> float | None:
    """Seconds until ``missing`` has left the window; ``None``: more than is in it.

    Args:
        slots: (second that it counts from, amount), oldest first.
        missing: what has to go.
        now: on the axis of the slots.
    """
    for at, amount in slots:
        missing -= amount
        if missing <= 0:
            return max(at + RATE_SECONDS - now, 0.0)
    return None
