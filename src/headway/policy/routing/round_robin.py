"""Round robin: each in turn."""

from headway.core.fleet import FleetView, ReplicaId
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest
from headway.policy.routing.candidates import able, chosen, none


class RoundRobin:
    """The replica that was chosen longest ago, whatever its load; the baseline of every comparison."""

    name = "round-robin"

    def __init__(self) -> None:
        self._turns: dict[ReplicaId, int] = {}
        self._turn = 0

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The next one that can take the call."""
        del now
        loads = able(request, view)
        if not loads:
            return none(self.name, request, view)
        turns = [self._turns.get(load.replica.id, 0) for load in loads]
        best = loads[turns.index(min(turns))]
        self._turn += 1
        self._turns[best.replica.id] = self._turn
        scores = tuple([Candidate(load.replica.id, turn) for load, turn in zip(loads, turns, strict=True)])
        return chosen(self.name, best, "its turn", scores)

    def observe(self, event: RouteEvent) -> None:
        """Nothing is learnt."""
