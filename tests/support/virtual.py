"""A fleet and its agents in virtual time: engines that prefill, decode and forget, sessions that call and use tools.

The engine is fluid: between two events its rates are constant. It prefills one call at a time, first come first
served, at ``prefill`` tokens a second; each of d calls that are writing gets a token every
``token + token_beside · (d - 1)`` seconds, and ``shared`` of that rate while a prompt is computed. It caches whole
messages, least recently used out first.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.dispatched import Dispatch
from headway.policy.lengths import Prefix
from headway.policy.order.waiting import Lane, Waiting
from headway.policy.route import RouteDone, RoutePolicy, RouteRequest, RouteSent, RouteStarted
from headway.policy.schedule import Scheduler

_POLL = 0.1


class Loop:
    """Time that passes only from one event to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, time: float, then: Callable[[], None]) -> None:
        heappush(self._events, (max(time, self.now), next(self._order), then))

    def run(self, until: float = float("inf")) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, then = heappop(self._events)
            then()


@dataclass(frozen=True)
class Turn:
    """One call of a session: tokens that its message adds, tokens of the answer, and the tool that follows."""

    added: int
    output: int
    tool: str = ""
    gap: float = 0.0


@dataclass(frozen=True)
class Session:
    """A task: calls one after the other, each prompt repeating the one before."""

    name: str
    start: float
    turns: tuple[Turn, ...]
    system: tuple[int, int] = (0, 0)
    """Digest and tokens of what its prompts begin with."""
    tenant: str = ""
    lane: Lane = "interactive"
    slack: float | None = None
    """Seconds in which it has to be done."""


@dataclass(frozen=True)
class Speed:
    prefill: float = 4000.0
    token: float = 0.02
    token_beside: float = 0.0005
    shared: float = 0.3
    slots: int = 64
    memory: int = 100_000
    tells: bool = False
    """It is known how many slots it has."""


@dataclass
class Job:
    """One call at an engine."""

    call: "Call"
    prompt: tuple[Prefix, ...]
    kept: Prefix
    """The prompt with its answer, as the next prompt will begin."""
    left: float = 0.0
    writing: float = 0.0
    cached: int = 0
    started: bool = False


class Engine:
    """One replica."""

    def __init__(self, loop: Loop, name: str, speed: Speed) -> None:
        self.replica = Replica(
            id=ReplicaId(name), url=f"http://127.0.0.1:1/{name}/v1", slots=speed.slots if speed.tells else None
        )
        self.speed = speed
        self.in_flight = 0
        self.computed = 0
        self._loop = loop
        self._queue: list[Job] = []
        self._running: list[Job] = []
        self._cache: OrderedDict[int, int] = OrderedDict()
        self._cached = 0
        self._at = 0.0
        self._epoch = 0

    def submit(self, job: Job) -> None:
        self.in_flight += 1
        self._advance()
        self._queue.append(job)
        self._go_on()

    def _advance(self) -> None:
        passed, self._at = self._loop.now - self._at, self._loop.now
        prefilling = next((job for job in self._running if job.left > 0), None)
        writing = [job for job in self._running if job.started]
        if prefilling is not None:
            prefilling.left -= passed * self.speed.prefill
        for job in writing:
            job.writing -= passed * self._rate(len(writing), shared=prefilling is not None)

    def _rate(self, writing: int, *, shared: bool) -> float:
        rate = 1 / (self.speed.token + self.speed.token_beside * (writing - 1))
        return rate * self.speed.shared if shared else rate

    def _go_on(self) -> None:
        """Settle what has come to its end, and wait for what will next."""
        for job in [job for job in self._running if not job.started and job.left <= 1e-6]:
            job.started, job.left = True, 0.0
            job.call.started(self)
        for job in [job for job in self._running if job.started and job.writing <= 1e-6]:
            self._running.remove(job)
            self._keep((*job.prompt, job.kept))
            self.in_flight -= 1
            job.call.ended(self, job)
        while self._queue and len(self._running) < self.speed.slots and self._fits(self._queue[0]):
            self._begin(self._queue.pop(0))
        self._epoch += 1
        times = self._times()
        if times:
            self._loop.at(self._loop.now + max(1e-9, min(times)), lambda epoch=self._epoch: self._wake(epoch))

    def _times(self) -> list[float]:
        prefilling = next((job for job in self._running if not job.started), None)
        writing = [job for job in self._running if job.started]
        times = [job.writing / self._rate(len(writing), shared=prefilling is not None) for job in writing]
        return times if prefilling is None else [*times, prefilling.left / self.speed.prefill]

    def _wake(self, epoch: int) -> None:
        if epoch == self._epoch:
            self._advance()
            self._go_on()

    def _fits(self, job: Job) -> bool:
        used = sum(one.kept[1] for one in self._running)
        return not self._running or used + job.kept[1] <= self.speed.memory

    def _begin(self, job: Job) -> None:
        job.cached = max((tokens for digest, tokens in job.prompt if digest in self._cache), default=0)
        job.left = max(1.0, job.prompt[-1][1] - job.cached)
        self.computed += job.prompt[-1][1] - job.cached
        job.writing = job.kept[1] - job.prompt[-1][1]
        self._keep(job.prompt)
        self._running.append(job)

    def _keep(self, prompt: tuple[Prefix, ...]) -> None:
        """Touch the longest prefix first, so that the shortest is the last to go."""
        before = [0, *[tokens for _, tokens in prompt[:-1]]]
        for (digest, tokens), start in reversed(list(zip(prompt, before, strict=True))):
            if digest not in self._cache:
                self._cached += tokens - start
            self._cache[digest] = tokens - start
            self._cache.move_to_end(digest)
        while self._cached > self.speed.memory:
            _, own = self._cache.popitem(last=False)
            self._cached -= own


@dataclass
class Outcome:
    """What became of a session."""

    session: Session
    ended: float | None = None
    """``None``: it was refused on its way."""
    calls: int = 0
    waits: list[float] = field(default_factory=list[float])
    """Seconds from each call's arrival to its first token."""

    @property
    def seconds(self) -> float:
        assert self.ended is not None
        return self.ended - self.session.start

    @property
    def good(self) -> bool:
        return self.ended is not None and (self.session.slack is None or self.seconds <= self.session.slack)


class Call:
    """One call on its way through the gateway."""

    def __init__(self, world: "World", outcome: Outcome, number: int, prompt: tuple[Prefix, ...]) -> None:
        self.world, self.outcome, self.number, self.prompt = world, outcome, number, prompt
        self.turn = outcome.session.turns[number]
        self.arrived = world.loop.now
        session = outcome.session
        self.request = RouteRequest(
            model="m",
            task=TaskId(session.name),
            session=SessionId(session.name),
            call=SpanId(f"{session.name}.{number}"),
            prompt=prompt,
            output_tokens=self.turn.output,
            stream=True,
            draw=(number * 0.618 + 0.1) % 1.0,
        )

    def started(self, engine: Engine) -> None:
        self.outcome.waits.append(self.world.loop.now - self.arrived)
        self.world.observe(RouteStarted(replica=engine.replica.id, call=self.request.call, at=self.world.loop.now))

    def ended(self, engine: Engine, job: Job) -> None:
        now = self.world.loop.now
        turns = self.outcome.session.turns
        last = self.number + 1 == len(turns)
        self.outcome.calls += 1
        event = RouteDone(
            replica=engine.replica.id,
            task=self.request.task,
            failed=False,
            call=self.request.call,
            at=now,
            input_tokens=self.prompt[-1][1],
            cached_tokens=job.cached,
            output_tokens=self.turn.output,
            tools=(self.turn.tool,) if self.turn.tool and not last else (),
        )
        if last:
            self.outcome.ended = now
        else:
            added = (
                hash((self.outcome.session.name, self.number, "added")),
                job.kept[1] + turns[self.number + 1].added,
            )
            grown = (*self.prompt, job.kept, added)
            self.world.loop.at(now + self.turn.gap, lambda: self.world.call(self.outcome, self.number + 1, grown))
        self.world.observe(event)


class World:
    """Engines, sessions, and either a bare route policy or a whole scheduler between them."""

    def __init__(self, sessions: Iterable[Session], policy: RoutePolicy | Scheduler, speeds: Iterable[Speed]) -> None:
        self.loop = Loop()
        self.engines = {
            engine.replica.id: engine
            for engine in (Engine(self.loop, f"r{number}", speed) for number, speed in enumerate(speeds))
        }
        self.outcomes = [Outcome(session) for session in sessions]
        self._policy = policy
        self._waiting: dict[SpanId, Call] = {}
        self._polling = False
        for outcome in self.outcomes:
            self.loop.at(outcome.session.start, lambda outcome=outcome: self._open(outcome))

    @property
    def computed(self) -> int:
        """Tokens of prefill, all replicas together."""
        return sum(engine.computed for engine in self.engines.values())

    def view(self) -> FleetView:
        return FleetView(
            tuple(
                ReplicaLoad(replica=engine.replica, healthy=True, in_flight=engine.in_flight)
                for engine in self.engines.values()
            )
        )

    def call(self, outcome: Outcome, number: int, prompt: tuple[Prefix, ...]) -> None:
        call, session, policy, now = Call(self, outcome, number, prompt), outcome.session, self._policy, self.loop.now
        if not isinstance(policy, Scheduler):
            decision = policy.decide(call.request, self.view(), now)
            assert decision.replica is not None
            replica = decision.replica.id
            policy.observe(RouteSent(replica=replica, task=call.request.task, at=now, request=call.request))
            self._submit(call, replica)
            return
        waiting = Waiting(
            request=call.request,
            arrived=now,
            tenant=session.tenant,
            lane=session.lane,
            deadline=None if session.slack is None else session.start + session.slack,
            parent=SpanId(f"{session.name}.{number - 1}") if number else None,
        )
        if policy.arrive(waiting, self.view(), now) is None:
            self._waiting[call.request.call] = call
        self._pump()

    def observe(self, event: RouteStarted | RouteDone) -> None:
        self._policy.observe(event)
        self._pump()

    def _open(self, outcome: Outcome) -> None:
        session = outcome.session
        digest, tokens = session.system
        added = (hash((session.name, "first")), tokens + session.turns[0].added)
        self.call(outcome, 0, ((digest, tokens), added) if tokens else (added,))

    def _pump(self) -> None:
        policy = self._policy
        if not isinstance(policy, Scheduler):
            return
        while (step := policy.next(self.view(), self.loop.now)) is not None:
            call = self._waiting.pop(step.waiting.request.call)
            if isinstance(step, Dispatch) and step.decision.replica is not None:
                self._submit(call, step.decision.replica.id)
        if policy.waiting and not self._polling:
            self._polling = True
            self.loop.at(self.loop.now + _POLL, self._poll)

    def _poll(self) -> None:
        self._polling = False
        self._pump()

    def _submit(self, call: Call, replica: ReplicaId) -> None:
        tokens = call.prompt[-1][1] + call.turn.output
        kept = (hash((call.outcome.session.name, call.number, "answer")), tokens)
        self.engines[replica].submit(Job(call, call.prompt, kept))


def ran(
    sessions: Iterable[Session], policy: RoutePolicy | Scheduler, speeds: Iterable[Speed], until: float = float("inf")
) -> World:
    """The world after all sessions, or after ``until`` seconds."""
    world = World(sessions, policy, speeds)
    world.loop.run(until)
    return world
