"""Makes the scheduler that the operator wrote down, and puts it to work."""

from typing import Final, Literal, cast

from msgspec import Struct

from headway.core.clock import Clock
from headway.gateway.fleet import LiveFleet
from headway.gateway.turns import LONGEST, MOST, Turns
from headway.policy.identify import Identifier
from headway.policy.order.orders import EarliestDeadline, FirstCome, LeastAttained, LongestPath
from headway.policy.order.waiting import Order
from headway.policy.route import RoutePolicy
from headway.policy.schedule import PATIENCE, Scheduler
from headway.policy.shadow import Shadow

OrderName = Literal["first-come", "least-attained", "earliest-deadline", "longest-path"]
DEFAULT: Final = "expected-seconds"
"""The routing policy where calls are scheduled and none is named."""
_ORDERS: Final[dict[str, type[Order]]] = {
    order.name: order for order in (FirstCome, LeastAttained, EarliestDeadline, LongestPath)
}


class Scheduling(Struct, frozen=True, kw_only=True):
    """How calls take turns."""

    order: OrderName = "first-come"
    admit_tasks: bool = True
    patience: float = PATIENCE
    weights: dict[str, float] = {}
    """Of tenants, by id; 1 for those not named."""
    batch: frozenset[str] = frozenset()
    """Tenants and keys, by id, whose calls are batch where they do not say otherwise."""
    shadow: str | None = None
    """A routing policy, by name, that is asked, too, and not heeded."""
    most_waiting: int = MOST
    longest_wait: float = LONGEST


def wants_all(policy: RoutePolicy) -> bool:
    """Whether ``policy`` says (``wants_all = True``) that it has use for prompts, first tokens and usage."""
    return cast("bool", getattr(policy, "wants_all", False))


def open_turns(
    scheduling: Scheduling | None,
    policy: RoutePolicy,
    fleet: LiveFleet,
    identifier: Identifier,
    clock: Clock,
    *,
    tried: RoutePolicy | None = None,
) -> Turns | None:
    """The scheduler at work; ``None``: calls are sent as they come, and the policy wants to know no more of them.

    Args:
        scheduling: ``None``: calls are held back by nothing.
        policy: where calls go.
        fleet: the engines.
        identifier: measures prompts.
        clock: for times.
        tried: another policy, that is asked too and not heeded.
    """
    if scheduling is None:
        if not wants_all(policy):
            return None
        return Turns(Scheduler(policy, FirstCome(), hold=False), fleet, identifier.prompt, clock)
    scheduler = Scheduler(
        policy,
        _ORDERS[scheduling.order](),
        tenants=scheduling.weights,
        admit_tasks=scheduling.admit_tasks,
        patience=scheduling.patience,
    )
    shadow = None if tried is None else Shadow(tried, scheduler.known.seconds)
    return Turns(
        scheduler,
        fleet,
        identifier.prompt,
        clock,
        shadow=shadow,
        most=scheduling.most_waiting,
        longest=scheduling.longest_wait,
    )
