"""A call before it is made, and what becomes of it: granted, or found too little."""

from msgspec import Struct

from headway.core.access import Caller
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.policy.limits.book import Want
from headway.policy.limits.counter import Counter, Plan, Warned


class Ask(Struct, frozen=True):
    """A call before it is made: whose it is and what it may use at most."""

    caller: Caller
    task: TaskId
    tokens: int
    """Input and output."""
    money: MicroUsd | None
    """``None``: the price is unknown."""
    fresh: bool = False
    """The task began with this call, under a name that was made here: nobody else can have used anything of it."""


class Grant(Struct, eq=False):
    """A call may be made; what it may use is reserved until it is settled or released."""

    number: int
    plan: Plan
    tokens: int
    money: int
    slots: tuple[int, ...]
    deadline: float | None = None
    """When the task's seconds are over, on the axis of ``now``."""
    warned: tuple[Warned, ...] = ()
    ended: bool = False


class Short(Struct, frozen=True):
    """This worker holds too little: let it speak to the book, then ask again."""

    lacking: tuple[tuple[Counter, int, int], ...]
    """(counter, what the call needs of it, its limit)."""


def wants_of(shorts: list[Short]) -> tuple[Want, ...]:
    """What several waiting calls need together."""
    found: dict[str, Want] = {}
    for short in shorts:
        for counter, need, stop in short.lacking:
            known = found.get(counter.name)
            if known is None:
                found[counter.name] = Want(counter.name, counter.kind, stop, need, need)
            else:
                least, limit = min(known.least, need), min(known.limit, stop)
                found[counter.name] = Want(counter.name, counter.kind, limit, least, known.need + need)
    return tuple(found.values())
