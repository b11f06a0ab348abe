"""SGLang's cache-aware rule: affinity to a prefix, unless the fleet is out of balance."""

from typing import Final

from headway.core.fleet import FleetView
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteElsewhere, RouteEvent, RouteLost, RouteRequest, RouteSent
from headway.policy.routing.candidates import able, chosen, none
from headway.policy.routing.failures import Failures
from headway.policy.routing.prefixes import Prefixes

_ABSOLUTE: Final = 32
_RELATIVE: Final = 1.1
_SHARE: Final = 0.5


class CacheAware:
    """Published rule of SGLang's router, with its defaults.

    If the most loaded replica has more than 32 calls more than the least loaded and more than 1.1 times as many, the
    least loaded one. Else the one that matches most of the prompt if that is more than half of it; else the least
    loaded. Whoever gets the prompt is taken to hold it from then on; the engine's own reports are not used.
    """

    name = "cache-aware"
    wants_all = True

    def __init__(self) -> None:
        self._prefixes = Prefixes()
        self._failures = Failures()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """Balance first, then affinity."""
        del now
        loads, notes = self._failures.spare(request.task, able(request, view))
        if not loads:
            return none(self.name, request, view)
        least = min(loads, key=lambda load: load.in_flight)
        most = max(load.in_flight for load in loads)
        if most - least.in_flight > _ABSOLUTE and most > _RELATIVE * least.in_flight:
            scores = tuple([Candidate(load.replica.id, load.in_flight) for load in loads])
            return chosen(self.name, least, "out of balance: fewest in flight", scores, notes)
        matched = self._prefixes.match(request.prompt)
        shares = [matched.get(load.replica.id, 0) / max(1, request.prompt[-1][1]) if matched else 0.0 for load in loads]
        scores = tuple([Candidate(load.replica.id, 1.0 - share) for load, share in zip(loads, shares, strict=True)])
        best = max(shares)
        if best > _SHARE:
            holders = [load for load, share in zip(loads, shares, strict=True) if share == best]
            holder = min(holders, key=lambda load: load.in_flight)
            return chosen(self.name, holder, "holds most of the prompt", scores, notes)
        return chosen(self.name, least, "no replica holds half of the prompt: fewest in flight", scores, notes)

    def observe(self, event: RouteEvent) -> None:
        """Whoever was sent a prompt holds it."""
        self._failures.observe(event)
        if isinstance(event, RouteSent) and event.request is not None:
            self._prefixes.insert(event.replica, event.request.prompt)
        elif isinstance(event, RouteElsewhere):
            self._prefixes.insert(event.replica, event.prompt)
        elif isinstance(event, RouteLost):
            self._prefixes.forget(event.replica)
