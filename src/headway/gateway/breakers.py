"""Circuit breakers of all replicas: which are left alone now, and why."""

import logging
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from headway.core.clock import Clock
from headway.core.fleet import FleetView, ReplicaId
from headway.gateway.admin import Order, Show
from headway.gateway.exposition import family
from headway.policy.resend.breaker import LEAST, REST, SHARE, Breaker, State
from headway.policy.route import RouteRequest
from headway.policy.routing.candidates import able

_LOG: Final = logging.getLogger(__name__)
_NAMED: Final = 5
_NOBODY: Final[frozenset[ReplicaId]] = frozenset()
_LEVELS: Final[dict[State, int]] = {"closed": 0, "half_open": 1, "open": 2}


class BreakerRules(Struct, frozen=True, kw_only=True):
    """When a replica is left alone, and for how long."""

    failures: float = SHARE
    """Share of the calls within 30 s that failed."""
    calls: int = LEAST
    """Calls within 30 s below which nothing is concluded."""
    rest: float = REST
    """Seconds until one call tries whether it is well again; doubled each time that this fails, up to 2 min."""


class BreakerState(Struct, frozen=True, kw_only=True):
    """One replica's, as people see it."""

    replica: ReplicaId
    state: State
    opens: int
    """How often it has opened."""
    retry_after: float
    """Seconds until a call may pass; 0: now."""


class Breakers:
    """A breaker for each replica, made when a call to it first ends."""

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._breakers: dict[ReplicaId, Breaker] = {}
        self._tripped: set[ReplicaId] = set()
        """Those that are not closed: mostly none, and then a call is asked nothing."""

    def barred(self, now: float) -> frozenset[ReplicaId]:
        """Replicas that no call should be sent to now."""
        if not self._tripped:
            return _NOBODY
        return frozenset([replica for replica in self._tripped if not self._breakers[replica].allows(now)])

    def sent(self, replica: ReplicaId) -> bool:
        """A call is sent there; whether it is the one that tries whether the replica is well again."""
        return replica in self._tripped and self._breakers[replica].sent()

    def ended(self, replica: ReplicaId, now: float, *, well: bool | None, trial: bool) -> None:
        """A call that was sent there has ended; ``well``: whether the replica did its part, ``None``: unknown."""
        if well is None:
            if trial:
                self._breakers[replica].cancelled()
            return
        breaker = self._breakers.get(replica)
        if breaker is None:
            rules = self._rules
            breaker = self._breakers[replica] = Breaker(rules.rest, rules.failures, rules.calls)
        before = breaker.state
        breaker.ended(now, failed=not well, trial=trial)
        if breaker.state != before:
            self._turned(replica, breaker, now)

    def states(self, now: float) -> list[BreakerState]:
        """All that had a call, by replica."""
        return [
            BreakerState(
                replica=replica, state=breaker.state, opens=breaker.opens, retry_after=breaker.retry_after(now)
            )
            for replica, breaker in sorted(self._breakers.items())
        ]

    def shown(self, clock: Clock) -> Show:
        """For those who run the gateway."""

        async def show(order: Order) -> object:
            del order
            return {"breakers": self.states(clock.now())}

        return show

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        labelled = [({"replica": replica}, breaker) for replica, breaker in self._breakers.items()]
        yield from family(
            "headway_replica_breaker",
            "gauge",
            "0: calls pass; 1: one call tries the replica; 2: it is left alone, because calls to it failed.",
            [(labels, _LEVELS[breaker.state]) for labels, breaker in labelled],
        )
        yield from family(
            "headway_replica_breaker_opened_total",
            "counter",
            "How often a replica was left alone because calls to it failed.",
            [(labels, breaker.opens) for labels, breaker in labelled],
        )

    def _turned(self, replica: ReplicaId, breaker: Breaker, now: float) -> None:
        told = {"event": f"breaker_{breaker.state}", "replica": replica}
        if breaker.state == "closed":
            self._tripped.discard(replica)
            _LOG.info("replica %s answers again: calls pass", replica, extra=told)
        else:
            self._tripped.add(replica)
            rest = breaker.retry_after(now)
            _LOG.warning("replica %s fails calls and is left alone for %g s", replica, rest, extra=told)


def left_out(barred: frozenset[ReplicaId], request: RouteRequest, view: FleetView) -> tuple[str, ...]:
    """What a receipt is to say of replicas that could have got a call and were barred."""
    names = [load.replica.id for load in able(request, view) if load.replica.id in barred]
    if not names:
        return ()
    shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    return (f"Left out, as too many calls failed there of late: {shown}.",)
