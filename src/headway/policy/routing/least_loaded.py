"""Least-loaded: the fewest calls in flight."""

from collections import OrderedDict
from typing import Final

from headway.core.fleet import FleetView, ReplicaId, ReplicaLoad
from headway.core.span import Candidate, Receipt
from headway.core.task import TaskId
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest, RouteSent
from headway.policy.routing.candidates import none

_HOMES: Final = 10_000
"""Tasks whose last replica is remembered; the ones that were active longest ago are forgotten first."""

_FIRST: Final = -2
"""A turn before every other: a replica that was never chosen has -1."""


class LeastLoaded:
    """The healthy replica with the fewest calls in flight; among equals the task's last one, then the longest idle.

    A task's next call repeats its last one, so the replica that served that has computed most of the prompt already.
    Beyond that, equal replicas take turns, and one that is new or back takes its first call before any equal one.
    """

    name = "least-loaded"

    def __init__(self) -> None:
        self._chosen: dict[ReplicaId, int] = {}
        self._turn = 0
        self._homes: OrderedDict[TaskId, ReplicaId] = OrderedDict()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The least loaded replica that serves ``request.model``, is healthy and is not excluded."""
        del now
        model, excluded, chosen = request.model, request.excluded, self._chosen
        home = self._homes.get(request.task)
        best: ReplicaLoad | None = None
        best_load = best_turn = 0
        tied = False
        candidates: list[Candidate] = []
        for load in view.loads:
            replica = load.replica
            if not load.healthy or replica.id in excluded or (replica.models and model not in replica.models):
                continue
            candidates.append(Candidate(replica.id, load.in_flight))
            turn = _FIRST if replica.id == home else chosen.get(replica.id, -1)
            if best is None or load.in_flight < best_load:
                best, best_load, best_turn, tied = load, load.in_flight, turn, False
            elif load.in_flight == best_load:
                tied = True
                if turn < best_turn:
                    best, best_turn = load, turn
        if best is None:
            return none(self.name, request, view)
        self._turn += 1
        winner = best.replica.id
        chosen[winner] = self._turn
        reason = _reason(len(candidates), tied=tied, at_home=winner == home)
        receipt = Receipt(policy=self.name, winner=winner, reason=reason, candidates=tuple(candidates))
        return RouteDecision(replica=best.replica, receipt=receipt)

    def observe(self, event: RouteEvent) -> None:
        """Remember where a task's last call went."""
        if not isinstance(event, RouteSent) or not event.task:
            return
        self._homes[event.task] = event.replica
        self._homes.move_to_end(event.task)
        if len(self._homes) > _HOMES:
            self._homes.popitem(last=False)


def _reason(candidates: int, *, tied: bool, at_home: bool) -> str:
    if candidates == 1:
        return "the only one"
    if not tied:
        return "fewest in flight"
    return f"as few in flight as any, {'served the task last' if at_home else 'chosen longest ago'}"
