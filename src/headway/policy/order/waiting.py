"""A call that waits for its turn, and what an order of waiting calls is."""

from typing import Final, Literal, Protocol

from msgspec import Struct

from headway.core.task import SpanId, TaskId
from headway.policy.route import RouteRequest

Lane = Literal["interactive", "batch"]

AGING: Final = 1 / 8
"""Seconds of service that a second of waiting makes up for: what waited 8 times as long as it was served counts as new
(Autellix promotes at this ratio)."""
LONGEST: Final = 600.0
"""Service and paths count up to here, so that aging makes up for any of them within 80 minutes."""
LEVEL: Final = 10.0
"""Seconds of head start for each level of priority; being finite, it starves nobody."""


class Waiting(Struct, frozen=True, kw_only=True):
    """One call in the queue."""

    request: RouteRequest
    arrived: float
    """Epoch seconds, here and below."""
    tenant: str = ""
    lane: Lane = "interactive"
    priority: int = 0
    """Higher goes first, within its tenant and lane."""
    deadline: float | None = None
    """When its TASK has to be done."""
    parent: SpanId | None = None
    """The call of its task that came before it."""


class Served(Struct, frozen=True, kw_only=True):
    """A call has ended after ``seconds`` at a replica."""

    call: SpanId
    task: TaskId
    parent: SpanId | None
    seconds: float


class Order(Protocol):
    """Sorts the waiting calls of one tenant in one lane.

    All keys are in seconds and smaller goes first. The key of a waiting call never falls, and grows without bound with
    the time that its task came: whoever comes late enough comes behind, so that nobody starves.
    """

    name: str

    def key(self, waiting: Waiting) -> float:
        """Where ``waiting`` stands."""
        ...

    def observe(self, event: Served) -> None:
        """Learn what was served."""
        ...
