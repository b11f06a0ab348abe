"""The scheduler: which call is sent next, and where. Everything that decides about calls, joined.

Calls of tasks that have a place wait for their replica; all others wait for a place, by model. A call is sent when it
is its turn, a replica has room for its task and that replica's window is open.
"""

from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import structs

from headway.core.fleet import FleetView, ReplicaId, ReplicaLoad
from headway.core.span import Receipt
from headway.core.task import SpanId
from headway.policy.admission.places import Places
from headway.policy.admission.promises import Promises, Refused
from headway.policy.admission.window import Window
from headway.policy.dispatched import Dispatch, Dispatched
from headway.policy.order.queue import Fairness, Queue
from headway.policy.order.waiting import Order, Served, Waiting
from headway.policy.route import (
    RouteDecision,
    RouteDone,
    RouteElsewhere,
    RouteEvent,
    RouteLost,
    RoutePolicy,
    RouteRequest,
    RouteSent,
    RouteStarted,
)
from headway.policy.routing.candidates import able
from headway.policy.routing.expected_seconds import ExpectedSeconds
from headway.policy.routing.flights import Flight
from headway.policy.routing.knowledge import Knowledge

PATIENCE: Final = 120.0
"""Seconds that the first in a queue waits for a place before a task that has one is made to take turns."""
_FULL_AFTER: Final = 3.0
_FULL_FOR: Final = 60.0
"""Seconds for which calls have to have been waiting before the fleet counts as full, and for which it then does."""
_LOOKAHEAD: Final = 8
"""Calls behind the first that may be sent while it does not fit."""
_EQUAL: Final[Mapping[str, float]] = MappingProxyType({})


class Scheduler:
    """Decides for all calls of one fleet.

    Call `arrive` when a request has been identified, then `next` until it says ``None``, and again whenever anything
    was observed or, while calls wait, ten times a second. Whatever `next` gives has to be done.

    Args:
        route: where calls go that may go to several replicas.
        order: whose turn it is within a tenant's calls.
        tenants: weights of tenants; 1 for those not named.
        hold: whether calls are held back at all; without it each is sent as it comes.
        admit_tasks: whether tasks need places; without it only the windows hold calls back.
        patience: see `PATIENCE`.
    """

    def __init__(
        self,
        route: RoutePolicy,
        order: Order,
        *,
        tenants: Mapping[str, float] = _EQUAL,
        hold: bool = True,
        admit_tasks: bool = True,
        patience: float = PATIENCE,
    ) -> None:
        self._route = route
        self._name = str(getattr(route, "name", "route"))
        self._order = order
        self._hold = hold
        self._admit_tasks = hold and admit_tasks
        self._patience = patience
        self._shared = isinstance(route, ExpectedSeconds)
        self.known = route.known if isinstance(route, ExpectedSeconds) else Knowledge()
        """Of the fleet; not to be changed."""
        self._fairness = Fairness(tenants)
        self.promises = Promises()
        self.places = Places(self.known.speeds, self.promises.ended)
        self._windows = defaultdict[ReplicaId, Window](Window)
        self._bound = defaultdict[ReplicaId, Queue](self._queue)
        self._free = defaultdict[str, Queue](self._queue)
        self._under: dict[SpanId, Dispatched] = {}
        self._where: dict[SpanId, Queue] = {}
        self._since: float | None = None
        """Since when there has always been somebody who waits."""
        self._full = float("-inf")
        """When the fleet was full last."""
        self._pressed = float("-inf")

    @property
    def waiting(self) -> int:
        """Calls that wait now."""
        return len(self._where)

    def holds(self, call: SpanId) -> bool:
        """Whether ``call`` waits."""
        return call in self._where

    def arrive(self, waiting: Waiting, view: FleetView, now: float) -> Refused | None:
        """Let a call wait for its turn, or say at once that its deadline cannot be met."""
        queue = self._free.get(waiting.request.model)
        ahead = 0 if queue is None or self._home(waiting) is not None else queue.count(waiting.lane)
        late = self._late(waiting, able(waiting.request, view), ahead, now)
        if late is None:
            self._enqueue(waiting, now)
        else:
            self.places.abandon(waiting.request.task)
        return late

    def ask(self, waiting: Waiting, view: FleetView, now: float) -> Dispatch | Refused | None:
        """As `arrive`, but a call that need not wait while nobody else does is sent at once, which takes less."""
        if not self._where and waiting.deadline is None:
            dispatch = self._at_once(waiting, view, now)
            if dispatch is not None:
                return dispatch
        return self.arrive(waiting, view, now)

    def beside(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """Where a call that is under way would go if it were sent a second time; nothing is kept of it."""
        return self._route.decide(request, view, now)

    def leave(self, call: SpanId) -> None:
        """Nobody waits for ``call`` any more."""
        queue = self._where.get(call)
        waiting = None if queue is None else queue.remove(call)
        if queue is not None and waiting is not None:
            self._took(queue, waiting)
            self.places.left(call)

    def next(self, view: FleetView, now: float) -> Dispatch | Refused | None:
        """The next call to send or refuse; ``None``: nothing can be done now."""
        step = self._step(view, now) if self._where else None
        if not self._where:
            self._since = None
        elif step is None:
            self._since = now if self._since is None else self._since
            if now - self._since > _FULL_AFTER:
                self._full = now
        return step

    def _step(self, view: FleetView, now: float) -> Dispatch | Refused | None:
        for replica, bound in self._bound.items():
            if bound and (step := self._next_bound(replica, view, now)) is not None:
                return step
        for free in self._free.values():
            if free and (step := self._next_free(free, view, now)) is not None:
                return step
        return None

    def observe(self, event: RouteEvent) -> None:
        """Learn what became of calls, and where other workers send theirs. Sent they are by `next`."""
        flight = self.known.flights.get(event.call) if isinstance(event, RouteDone) else None
        self._route.observe(event)
        if not self._shared:
            self.known.observe(event)
        match event:
            case RouteDone():
                self._done(event, flight)
            case RouteLost(replica=replica):
                self.places.lost(replica)
                self._windows.pop(replica, None)
                self._under = {call: under for call, under in self._under.items() if under.replica != replica}
                self._unbind(replica)
            case RouteSent() | RouteStarted() | RouteElsewhere():
                pass

    # --- waiting

    def _queue(self) -> Queue:
        return Queue(self._order, self._fairness)

    def _enqueue(self, waiting: Waiting, now: float) -> None:
        home = self._home(waiting)
        if home is None or home in waiting.request.excluded:
            self._enqueue_free(waiting)
            return
        self.places.came(waiting.request, now)
        queue = self._where[waiting.request.call] = self._bound[home]
        queue.push(waiting)

    def _enqueue_free(self, waiting: Waiting) -> None:
        queue = self._where[waiting.request.call] = self._free[waiting.request.model]
        queue.push(waiting)

    def _take(self, queue: Queue, waiting: Waiting) -> None:
        queue.remove(waiting.request.call)
        self._took(queue, waiting)

    def _took(self, queue: Queue, waiting: Waiting) -> None:
        self._where.pop(waiting.request.call, None)
        if not queue and self._free.get(waiting.request.model) is queue:
            del self._free[waiting.request.model]  # callers choose the models' names, so there is no end of them

    def _unbind(self, replica: ReplicaId) -> None:
        queue = self._bound.pop(replica, None)
        for waiting in () if queue is None else tuple(queue):
            self.places.left(waiting.request.call)
            self._enqueue_free(waiting)

    def _home(self, waiting: Waiting) -> ReplicaId | None:
        return self.places.home(waiting.request.task) if self._admit_tasks and waiting.request.task else None

    # --- whose turn it is

    def _next_bound(self, replica: ReplicaId, view: FleetView, now: float) -> Dispatch | Refused | None:
        queue = self._bound[replica]
        first = queue.first()
        if first is None:
            return None
        load = next((load for load in able(first.request, view) if load.replica.id == replica), None)
        if load is None or self._home(first) != replica:
            self._take(queue, first)
            self.places.left(first.request.call)
            self._enqueue_free(first)
            return self._next_bound(replica, view, now)
        for lane in dict.fromkeys((first.lane, "interactive")):
            waiting = queue.first((lane,))
            if waiting is not None and self._open(replica, waiting, now):
                return self._send(queue, waiting, [load], view, now)
        return None

    def _next_free(self, queue: Queue, view: FleetView, now: float) -> Dispatch | Refused | None:
        first = queue.first()
        if first is None:
            return None
        for lane in dict.fromkeys((first.lane, "interactive")):
            head = queue.first((lane,))
            if head is None:
                continue
            patient = now - head.arrived <= self._patience
            for waiting in (head, *(queue.after(head, _LOOKAHEAD) if patient else ())):
                step = self._try(queue, waiting, view, now)
                if step is not None:
                    return step
            if not patient and self._press([load.replica.id for load in able(head.request, view)], now):
                return self._try(queue, head, view, now)
        return None

    def _try(self, queue: Queue, waiting: Waiting, view: FleetView, now: float) -> Dispatch | Refused | None:
        fit = able(waiting.request, view)
        if not fit:
            self._take(queue, waiting)
            decision = self._route.decide(waiting.request, view, now)
            return Refused(waiting=waiting, reason=decision.receipt.reason, cause="no_replica", decision=decision)
        open_to = self._with_room(waiting, [load for load in fit if self._open(load.replica.id, waiting, now)], now)
        return self._send(queue, waiting, open_to, view, now) if open_to else None

    def _with_room(self, waiting: Waiting, loads: list[ReplicaLoad], now: float) -> list[ReplicaLoad]:
        """Those of ``loads`` that have a place for the task; where none has, the first that can make one."""
        if not self._admit_tasks or not loads:
            return loads
        need = self._need(waiting, now)
        free = self._roomy(loads, need)
        if free:
            return free
        requeue = self.promises.wait(1, now)
        for load in loads:
            if self.places.make_room(load.replica.id, need, requeue, now, waiting.lane):
                return [load]
        return []

    def _open(self, replica: ReplicaId, waiting: Waiting, now: float) -> bool:
        load = self.known.flights.load(replica)
        if not self._hold or not load.calls:
            return True
        prompt, uncached = waiting.request.prompt, 0
        if load.prefill and prompt:
            uncached = prompt[-1][1] - self.known.prefixes.match(prompt).get(replica, 0)
        return self._windows[replica].open(waiting.lane, load, uncached, self.known.speeds.pace(replica), now)

    def _press(self, replicas: list[ReplicaId], now: float) -> bool:
        """The first in the queue has run out of patience: a task gives up its place, one at a time; whether now."""
        if not self._admit_tasks or not replicas or now - self._pressed < self._patience / 4:
            return False
        self._pressed = now
        return self.places.press(max(replicas, key=self.places.count))

    # --- sending

    def _at_once(self, waiting: Waiting, view: FleetView, now: float) -> Dispatch | None:
        """Send a call that nobody waits before, if a replica takes it as things are."""
        fit = able(waiting.request, view)
        home = self._home(waiting)
        if home is not None and home not in waiting.request.excluded:
            for load in fit:
                if load.replica.id == home and self._open(home, waiting, now):
                    receipt = Receipt(policy=self._name, winner=home, reason="its task has its place there")
                    decision = RouteDecision(replica=load.replica, receipt=receipt)
                    return self._sent(waiting, decision, home, None, now)
            return None
        if self._hold:
            fit = [load for load in fit if self._open(load.replica.id, waiting, now)]
        if self._admit_tasks and fit:
            fit = self._roomy(fit, self._need(waiting, now))
        if not fit:
            return None
        decision = self._choose(waiting.request, fit, view, now)
        return None if decision.replica is None else self._sent(waiting, decision, decision.replica.id, None, now)

    def _choose(self, request: RouteRequest, open_to: list[ReplicaLoad], view: FleetView, now: float) -> RouteDecision:
        """The routing policy's choice among ``open_to``."""
        if len(open_to) < len(view.loads):
            names = [load.replica.id for load in open_to]
            closed = [load.replica.id for load in view.loads if load.replica.id not in names]
            request = structs.replace(request, excluded=request.excluded.union(closed))
        return self._route.decide(request, view, now)

    def _sent(
        self, waiting: Waiting, decision: RouteDecision, replica: ReplicaId, charged: int | None, now: float
    ) -> Dispatch:
        request = waiting.request
        sent = RouteSent(replica=replica, task=request.task, at=now, request=request)
        self._route.observe(sent)
        if not self._shared:
            self.known.observe(sent)
        if self._hold:
            self._windows[replica].sent(waiting.lane, now)
        if self._admit_tasks:
            self.places.sent(replica, request, self.known.output(waiting.request), now, waiting.lane)
        self._under[request.call] = Dispatched(waiting, replica, now, charged)
        return Dispatch(waiting=waiting, decision=decision)

    def _roomy(self, loads: list[ReplicaLoad], need: int) -> list[ReplicaLoad]:
        for load in loads:
            self.places.meet(load.replica)
        return [load for load in loads if self.places.room(load.replica.id, need)]

    def _need(self, waiting: Waiting, now: float) -> int:
        need = self.places.need(waiting.request, self.known.output(waiting.request))
        return need + self.places.spare(need, now) if waiting.lane == "batch" else need

    def _send(
        self, queue: Queue, waiting: Waiting, open_to: list[ReplicaLoad], view: FleetView, now: float
    ) -> Dispatch | Refused:
        self._take(queue, waiting)
        late = self._late(waiting, open_to, 0, now)
        if late is not None:
            self.places.left(waiting.request.call)
            self.places.abandon(waiting.request.task)
            return late
        decision = self._choose(waiting.request, open_to, view, now)
        replica = decision.replica
        if replica is None:
            return Refused(waiting=waiting, reason=decision.receipt.reason, cause="no_replica", decision=decision)
        charged = self._charge(waiting)
        if queue is not self._bound.get(replica.id):
            self.promises.sent(now, left=len(queue))
        return self._sent(waiting, decision, replica.id, charged, now)

    def _charge(self, waiting: Waiting) -> int:
        """What its tenant and lane are charged for it, in tokens; nobody is charged where nobody had to wait."""
        prompt = waiting.request.prompt
        charged = (prompt[-1][1] if prompt else 0) + self.known.output(waiting.request)
        self._fairness.take(waiting, charged)
        return charged

    def _late(self, waiting: Waiting, loads: list[ReplicaLoad], ahead: int, now: float) -> Refused | None:
        if waiting.deadline is None:
            return None
        seconds = min((self.known.seconds(waiting.request, load.replica.id) for load in loads), default=0.0)
        if self._admit_tasks and not self.places.knows(waiting.request.task):
            seconds = max(seconds, self.places.tenure or 0.0)
            if now - self._full <= _FULL_FOR:
                seconds = max(seconds, self.promises.task(len(self.places) + ahead, now))
        return self.promises.late(waiting, seconds, ahead, now)

    # --- what became of it

    def _measure(self, flight: Flight, replica: ReplicaId) -> None:
        """How much later than alone its first token came tells how many calls the replica can do with."""
        if flight.first is not None:
            alone = self.known.speeds.pace(replica).first_token(flight.ahead + flight.uncached, 0)
            calls = self.known.flights.load(replica).calls + 1
            self._windows[replica].observe(flight.first - flight.sent, alone, calls)

    def _done(self, event: RouteDone, flight: Flight | None) -> None:
        under = self._under.get(event.call)
        if under is None or under.replica != event.replica:
            return
        if flight is not None and not event.failed:
            self._measure(flight, event.replica)
        del self._under[event.call]
        waiting = under.waiting
        if self._hold:
            self._windows[event.replica].ended(waiting.lane)
        if self._admit_tasks:
            self.places.done(event)
            self.places.shrink(event.replica)
        if under.charged is not None and event.input_tokens is not None and event.output_tokens is not None:
            self._fairness.correct(waiting, event.input_tokens + event.output_tokens - under.charged)
        if event.at is not None:
            served = Served(call=event.call, task=event.task, parent=waiting.parent, seconds=event.at - under.at)
            self._order.observe(served)
