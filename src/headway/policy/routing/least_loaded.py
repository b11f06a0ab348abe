"""Least-loaded: the fewest calls in flight."""

from collections import OrderedDict
from typing import Final

from headway.core.fleet import FleetView, ReplicaId, ReplicaLoad
from headway.core.span import Candidate, Receipt
from headway.core.task import TaskId
from headway.policy.route import RouteDecision, RouteDone, RouteEvent, RouteRequest
from headway.policy.routing.candidates import able, none
from headway.policy.routing.failures import Failures

_HOMES: Final = 10_000
"""Tasks whose home is remembered; the ones that were active longest ago are forgotten first."""

_FIRST: Final = -2
"""A turn before every other: a replica that was never chosen has -1."""


class LeastLoaded:
    """The healthy replica with the fewest calls in flight; among equals the task's home, then the longest idle.

    A task's next call repeats its last one, so the replica that served that has computed most of the prompt already:
    it is the task's home. One that could not serve it comes after all others.
    Beyond that, equal replicas take turns, and one that is new or back takes its first call before any equal one.
    """

    name = "least-loaded"

    def __init__(self) -> None:
        self._chosen: dict[ReplicaId, int] = {}
        self._turn = 0
        self._homes: OrderedDict[TaskId, ReplicaId] = OrderedDict()
        self._failures = Failures()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The least loaded replica that serves ``request.model``, is healthy and is not excluded."""
        del now
        chosen = self._chosen
        home = self._homes.get(request.task)
        best: ReplicaLoad | None = None
        best_load = best_turn = 0
        tied = False
        candidates: list[Candidate] = []
        loads, notes = self._failures.spare(request.task, able(request, view))
        for load in loads:
            replica = load.replica
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
        receipt = Receipt(policy=self.name, winner=winner, reason=reason, candidates=tuple(candidates), notes=notes)
        return RouteDecision(replica=best.replica, receipt=receipt)

    def observe(self, event: RouteEvent) -> None:
        """Remember who served a task, and who could not."""
        self._failures.observe(event)
        if not isinstance(event, RouteDone) or not event.task:
            return
        if event.failed:
            if event.unserved and self._homes.get(event.task) == event.replica:
                del self._homes[event.task]
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
