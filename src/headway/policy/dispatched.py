"""A call whose turn it is, and one that had it."""

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.policy.order.waiting import Waiting
from headway.policy.route import RouteDecision


class Dispatch(Struct, frozen=True, kw_only=True, gc=False):
    """Send this call now. It counts as sent, so the route policy need not be told."""

    waiting: Waiting
    decision: RouteDecision


class Dispatched(Struct, gc=False):
    """A call that was sent and has not ended."""

    waiting: Waiting
    replica: ReplicaId
    at: float
    """When; epoch seconds."""
    charged: int | None
    """Tokens in its tenant's share; ``None``: nobody had to wait, so it counts in nobody's."""
