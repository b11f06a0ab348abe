"""Whose turn it is: calls are held here until the scheduler sends them on, and it is told what becomes of them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, Protocol, TypeVar

from msgspec import Struct, structs

from headway.core.clock import Clock
from headway.core.fleet import FleetView, ReplicaId
from headway.core.span import Receipt
from headway.core.task import SessionId, SpanId
from headway.gateway.breakers import Breakers, left_out
from headway.gateway.exposition import Histogram, family, histograms
from headway.gateway.fleet import LiveFleet
from headway.gateway.journal import CallRecord
from headway.gateway.responses import Failure, failure
from headway.gateway.unforeseen import Unforeseen
from headway.gateway.whereabouts import Whereabouts
from headway.policy.admission.promises import Refused
from headway.policy.dispatched import Dispatch
from headway.policy.lengths import Prefix
from headway.policy.order.queue import LANES
from headway.policy.order.waiting import Waiting
from headway.policy.route import RouteDecision, RouteDone, RouteEvent, RouteLost, RouteRequest, RouteStarted
from headway.policy.schedule import Scheduler
from headway.policy.shadow import Shadow
from headway.wire.dialect import Asked

T = TypeVar("T")
MOST: Final = 1_000
LONGEST: Final = 300.0
_BEAT: Final = 0.1
"""Seconds between two looks at what waits: places are given up, and patience ends, without anything happening."""
_GOLDEN: Final = 0.6180339887498949
"""Its multiples, without their whole part, fall evenly between 0 and 1."""
_SOON, _LATE = 1, 60
"""Bounds of the seconds after which to come again."""
_LEAST_SHOWN: Final = 0.001
_WAITS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)


class Held(Protocol):
    """A call that asks for its turn, and is told once what came of that, at once or later."""

    def decided(self, decision: RouteDecision, now: float) -> None:
        """It is its turn; or there is no replica for it."""
        ...

    def turned_away(self, problem: Failure, receipt: Receipt) -> None:
        """It gets no turn."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own."""
        ...


class _Holding(Struct, eq=False):
    held: Held
    record: CallRecord
    since: float


class Turns:
    """The scheduler at work in a gateway; used from one event loop only.

    Args:
        scheduler: decides.
        fleet: whose view it decides on.
        prompts: tells the prompt of a call that was identified just now.
        clock: for times.
        shadow: another policy that is tried.
        most: calls that may wait; one more is turned away at once.
        longest: seconds that one may wait.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        fleet: LiveFleet,
        prompts: Callable[[SpanId], tuple[Prefix, ...]],
        clock: Clock,
        *,
        shadow: Shadow | None = None,
        most: int = MOST,
        longest: float = LONGEST,
    ) -> None:
        self._scheduler = scheduler
        self._fleet = fleet
        self._prompts = prompts
        self._clock = clock
        self.breakers: Breakers | None = None
        """Bar replicas that fail calls; ``None``: nothing does."""
        self.whereabouts: Whereabouts | None = None
        """Where other workers hear of calls, and are heard of; ``None``: there are none."""
        self._shadow = shadow
        self._most = most
        self._longest = longest
        self._unforeseen = Unforeseen()
        self._held: dict[SpanId, _Holding] = {}
        """Oldest first."""
        self._waits = Histogram(_WAITS)
        self._draw = 0.0
        self._pumping = False
        self._timer: asyncio.TimerHandle | None = None
        fleet.watch(self._turned)

    @property
    def waiting(self) -> int:
        """Calls that are held now."""
        return len(self._held)

    def metrics(self) -> bytes:
        """For the page of metrics."""
        lanes = Counter([holding.record.lane for holding in self._held.values()])
        lines = [
            *family(
                "headway_calls_waiting",
                "gauge",
                "Calls that are held for their turn.",
                [({"lane": lane}, lanes[lane]) for lane in LANES],
            ),
            *histograms("headway_queue_seconds", "What calls waited for their turn that had to.", [({}, self._waits)]),
        ]
        if (shadow := self._shadow) is not None:
            counts = (("same", shadow.same), ("other", shadow.other), ("failed", shadow.failed))
            lines += [
                *family(
                    "headway_shadow_decisions_total",
                    "counter",
                    "What the policy that is tried would have done.",
                    [({"policy": shadow.name, "outcome": outcome}, count) for outcome, count in counts],
                ),
                *family(
                    "headway_shadow_saved_seconds",
                    "gauge",
                    "By how much sooner answers were expected where it would have sent their calls elsewhere.",
                    [({"policy": shadow.name}, shadow.saved)],
                ),
            ]
        return ("\n".join(lines) + "\n").encode()

    def close(self) -> None:
        """Look no more; whoever is held still is turned away by whoever holds its connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- what calls tell

    def arrive(self, held: Held, record: CallRecord, asks: Asked, excluded: frozenset[ReplicaId], now: float) -> None:
        """``held`` asks for its turn."""
        self._draw = (self._draw + _GOLDEN) % 1.0
        waiting = self._waiting(record, asks, excluded, now)
        self._held[record.span] = _Holding(held, record, now)
        try:
            step = self._scheduler.ask(waiting, self._view(now), now)
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            del self._held[record.span]
            self._scheduler.leave(record.span)
            held.met(error)
            return
        if step is not None:
            self._do(step, now)
            return
        self._pump(now)
        if len(self._held) > self._most and not self._pumping and self._held.pop(record.span, None) is not None:
            self._scheduler.leave(record.span)
            message = f"{self._most} calls wait for their turn already, which is the limit."
            self._turn_away(held, "queue_full", 429, message, self._scheduler.promises.wait(self._most, now))

    def beside(self, record: CallRecord, asks: Asked, excluded: frozenset[ReplicaId], now: float) -> RouteDecision:
        """Where a call that is under way would go if it were sent a second time; it has had its turn."""
        waiting = self._waiting(record, asks, excluded, now)
        return self._scheduler.beside(waiting.request, self._view(now), now)

    def leave(self, record: CallRecord) -> None:
        """Nobody waits for this call any more."""
        holding = self._held.pop(record.span, None)
        if holding is not None:
            self._scheduler.leave(record.span)
            self._note(holding, self._clock.now())

    def started(self, record: CallRecord, replica: ReplicaId, at: float) -> None:
        """The first token of its answer came."""
        self._observe((RouteStarted(replica=replica, call=record.span, at=at),))

    def ended(self, record: CallRecord, replica: ReplicaId, *, failed: bool, unserved: bool) -> None:
        """What was sent to ``replica`` has ended."""
        answer = None if failed else record.answer
        now = self._clock.now()
        if answer is None:
            task, call = record.task, record.span
            done = RouteDone(replica=replica, task=task, failed=True, unserved=unserved, call=call, at=now)
        else:
            usage, engine = answer.usage, answer.engine
            done = RouteDone(
                replica=replica,
                task=record.task,
                failed=False,
                call=record.span,
                at=now,
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cache_read,
                output_tokens=usage.output_tokens,
                prefill=None if engine is None else (engine.prefill_tokens, engine.prefill_seconds),
                tools=tuple([call.name for call in answer.tool_calls]) if answer.tool_calls else (),
            )
        self._observe((done,))
        if unserved and self.whereabouts is not None:
            self.whereabouts.unserved(replica, record.task)

    # --- what other workers tell

    def learn(self, events: Sequence[RouteEvent]) -> None:
        """Of their calls."""
        self._observe(events)

    # --- what the fleet tells

    def _turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        del reason
        if not healthy:
            self._observe((RouteLost(replica=replica),))
        elif self._held:
            self._pump(self._clock.now())

    # --- turn by turn

    def _observe(self, events: Sequence[RouteEvent]) -> None:
        for event in events:
            try:
                self._scheduler.observe(event)
            except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, which is no reason to fail a call
                self._unforeseen.met(error)
            if self._shadow is not None:
                self._try(self._shadow, lambda shadow, event=event: shadow.observe(event))
        if self._held:
            self._pump(self._clock.now())

    def _pump(self, now: float) -> None:
        """Send on all whose turn it is; what that brings about may lead here again, and is left to this loop."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while (step := self._scheduler.next(self._view(now), now)) is not None:
                self._do(step, now)
        except Exception as error:  # noqa: BLE001 - as above; nobody must be left waiting for it
            self._drop(error)
        finally:
            self._pumping = False
        if self._held and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BEAT, self._beat)

    def _view(self, now: float) -> FleetView:
        """The fleet, in which replicas that breakers bar count as unhealthy where others can do what they do."""
        view = self._fleet.view()
        barred = None if self.breakers is None else self.breakers.barred(now)
        if not barred:
            return view
        rest = [load.replica.models for load in view.loads if load.healthy and load.replica.id not in barred]
        return FleetView(
            tuple(
                [
                    structs.replace(load, healthy=False)
                    if load.replica.id in barred and any(_covers(models, load.replica.models) for models in rest)
                    else load
                    for load in view.loads
                ]
            )
        )

    def _beat(self) -> None:
        self._timer = None
        now = self._clock.now()
        for holding in list(self._held.values()):
            if now - holding.since <= self._longest:
                break
            self._scheduler.leave(holding.record.span)
            del self._held[holding.record.span]
            message = f"It waited {now - holding.since:.0f} s for its turn, which is the limit."
            self._note(holding, now)
            self._turn_away(
                holding.held, "queue_timeout", 503, message, self._scheduler.promises.wait(len(self._held), now)
            )
        if self._held:
            self._pump(now)

    def _do(self, step: Dispatch | Refused, now: float) -> None:
        if isinstance(step, Refused):
            self._refuse(step, now)
            return
        holding = self._held.pop(step.waiting.request.call, None)
        if holding is None:
            return
        if self.breakers is not None and (barred := self.breakers.barred(now) - {step.decision.receipt.winner}):
            holding.record.notes += left_out(barred, step.waiting.request, self._fleet.view())
        if self.whereabouts is not None and step.decision.replica is not None:
            self.whereabouts.sent(step.decision.replica.id, step.waiting.request, now)
        if self._shadow is not None and step.decision.replica is not None:
            request, replica, view = step.waiting.request, step.decision.replica.id, self._view(now)
            note = self._try(self._shadow, lambda shadow: shadow.sent(request, replica, view, now))
            if note is not None:
                holding.record.notes += (note,)
        self._decided(holding, step.decision, now)

    def _try(self, shadow: Shadow, what: Callable[[Shadow], T]) -> T | None:
        """Do something with the policy that is tried; whatever it does, no call is harmed."""
        try:
            return what(shadow)
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            shadow.failed += 1
            self._unforeseen.met(error)
        return None

    def _decided(self, holding: _Holding, decision: RouteDecision, now: float) -> None:
        self._note(holding, now)
        try:
            holding.held.decided(decision, now)
        except Exception as error:  # noqa: BLE001 - it is this call's fault and no other's
            holding.held.met(error)

    def _refuse(self, refused: Refused, now: float) -> None:
        holding = self._held.pop(refused.waiting.request.call, None)
        if holding is None:
            return
        if refused.decision is not None:
            self._decided(holding, refused.decision, now)
            return
        self._note(holding, now)
        reason = f"{refused.reason[:1].upper()}{refused.reason[1:]}."
        status = 503 if refused.retry_after is None else 429
        self._turn_away(holding.held, "deadline_unreachable", status, reason, refused.retry_after)

    def _turn_away(self, held: Held, error: str, status: int, message: str, wait: float | None) -> None:
        """``wait``: after how many seconds to come again; ``None``: that does not help."""
        receipt = Receipt(policy="schedule", winner="", reason=message)
        if wait is None:
            problem = failure(error, status, message, (b"x-should-retry", b"false"))
        else:
            again = max(_SOON, min(_LATE, ceil(wait)))
            problem = failure(error, status, f"{message} Try again in {again} s.", (b"retry-after", b"%d" % again))
        try:
            held.turned_away(problem, receipt)
        except Exception as fault:  # noqa: BLE001 - it is this call's fault and no other's
            held.met(fault)

    def _drop(self, error: Exception) -> None:
        """The scheduler has failed: those that it has lost get no turn any more."""
        self._unforeseen.met(error)
        for call, holding in list(self._held.items()):
            if not self._scheduler.holds(call):
                del self._held[call]
                holding.held.met(error)

    def _note(self, holding: _Holding, now: float) -> None:
        waited = now - holding.since
        if waited >= _LEAST_SHOWN:
            record = holding.record
            record.queued += waited
            self._waits.observe((waited,))
            record.notes += (f"It waited {waited:.3f} s for its turn.",)

    def _waiting(self, record: CallRecord, asks: Asked, excluded: frozenset[ReplicaId], now: float) -> Waiting:
        limit, identity = asks.output_limit, record.identity
        request = RouteRequest(
            model=record.model,
            task=record.task,
            excluded=excluded,
            call=record.span,
            session=SessionId("") if identity is None else identity.session,
            prompt=self._prompts(record.span),
            output_tokens=None if limit is None else min(limit, int(self._scheduler.known.answer)),
            stream=record.stream is True,
            draw=self._draw,
        )
        return Waiting(
            request=request,
            arrived=now,
            tenant=record.tenant,
            lane=record.lane,
            priority=record.priority,
            deadline=record.deadline,
            parent=None if identity is None else identity.parent,
        )


def _covers(models: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether who serves ``models`` serves all of ``others``, too; none named: all that there are."""
    return not models or (bool(others) and set(others) <= set(models))
