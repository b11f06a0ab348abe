"""Routing: which replica answers this call?"""

from collections import OrderedDict
from typing import Final, Literal, Protocol

from msgspec import Struct

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.core.span import Candidate, Receipt
from headway.core.task import TaskId

Refusal = Literal[
    "unknown_model",  # no replica serves it
    "unhealthy",  # those that do are all down, or there is none at all
    "excluded",  # those that are up were all tried for this call already
]


class RouteRequest(Struct, frozen=True, kw_only=True):
    """What a routing policy may know of a call."""

    model: str
    task: TaskId
    excluded: frozenset[ReplicaId] = frozenset()
    """Replicas that were tried for this call already."""


class RouteDecision(Struct, frozen=True, kw_only=True):
    """The replica to send the call to, and why; no replica: ``receipt.reason`` says what stands in the way."""

    replica: Replica | None
    receipt: Receipt
    refusal: Refusal | None = None
    """Set where there is no replica."""


class RouteSent(Struct, frozen=True, kw_only=True):
    """A call was handed to a replica."""

    replica: ReplicaId
    task: TaskId


class RouteDone(Struct, frozen=True, kw_only=True):
    """A call's answer ended, well or not."""

    replica: ReplicaId
    task: TaskId
    failed: bool


RouteEvent = RouteSent | RouteDone


class RoutePolicy(Protocol):
    """Decides where calls go. Registered by entry point in the group ``headway.route_policies``.

    A policy does no I/O, reads no clock and is never called from two threads at once.
    """

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The replica for ``request`` at ``now`` (epoch seconds)."""
        ...

    def observe(self, event: RouteEvent) -> None:
        """Learn what became of a decision."""
        ...


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
            return self._none(request, view)
        self._turn += 1
        winner = best.replica.id
        chosen[winner] = self._turn
        reason = _reason(len(candidates), tied=tied, at_home=winner == home)
        receipt = Receipt(policy=self.name, winner=winner, reason=reason, candidates=tuple(candidates))
        return RouteDecision(replica=best.replica, receipt=receipt)

    def observe(self, event: RouteEvent) -> None:
        """Remember where a task's last call went."""
        if isinstance(event, RouteDone) or not event.task:
            return
        self._homes[event.task] = event.replica
        self._homes.move_to_end(event.task)
        if len(self._homes) > _HOMES:
            self._homes.popitem(last=False)

    def _none(self, request: RouteRequest, view: FleetView) -> RouteDecision:
        serving = [load for load in view.loads if not load.replica.models or request.model in load.replica.models]
        refusal: Refusal
        if not view.loads:
            refusal, reason = "unhealthy", "the fleet is empty"
        elif not serving:
            refusal, reason = "unknown_model", f"no replica serves the model {request.model!r}"
        elif not any(load.healthy for load in serving):
            refusal, reason = "unhealthy", "every replica that serves the model is unhealthy"
        else:
            refusal, reason = "excluded", "every healthy replica that serves the model was tried already"
        receipt = Receipt(policy=self.name, winner="", reason=reason)
        return RouteDecision(replica=None, receipt=receipt, refusal=refusal)


def _reason(candidates: int, *, tied: bool, at_home: bool) -> str:
    if candidates == 1:
        return "the only one"
    if not tied:
        return "fewest in flight"
    return f"as few in flight as any, {'served the task last' if at_home else 'chosen longest ago'}"
