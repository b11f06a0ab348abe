"""What all calls of one gateway share."""

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.gateway.door import Door
from headway.gateway.fleet import LiveFleet
from headway.gateway.journal import Journal
from headway.gateway.unforeseen import Unforeseen
from headway.gateway.upstream import Upstream
from headway.policy.route import RoutePolicy


class Wiring:
    """The parts that a call meets on its way."""

    __slots__ = ("clock", "door", "fleet", "journal", "limits", "policy", "unforeseen", "upstream")

    def __init__(
        self,
        *,
        fleet: LiveFleet,
        policy: RoutePolicy,
        upstream: Upstream,
        journal: Journal,
        limits: Limits,
        clock: Clock,
        unforeseen: Unforeseen,
        door: Door | None,
    ) -> None:
        self.fleet = fleet
        self.policy = policy
        self.upstream = upstream
        self.journal = journal
        self.limits = limits
        self.clock = clock
        self.unforeseen = unforeseen
        self.door = door
        """``None``: whoever can reach the gateway may call."""
