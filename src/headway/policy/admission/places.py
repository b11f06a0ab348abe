"""A task's place at a replica: the memory that its prompts stay warm in while it is at its tools.

What ThunderAgent calls a program's residence and Continuum a pinned KV: tasks, not calls, are admitted, no more than
the replica keeps warm; the others wait, and a place is given up when its task stays away for longer than pays.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from headway.core.fleet import Replica, ReplicaId
from headway.core.task import SpanId, TaskId
from headway.policy.admission.capacity import Capacity
from headway.policy.admission.gaps import ToolGaps
from headway.policy.order.waiting import Lane
from headway.policy.route import RouteDone, RouteRequest
from headway.policy.speed import Speeds

_TAILS: Final = 16
"""Separate histories of one task (its sub-agents) that are counted."""
_AWAY: Final = 50_000
_UNPRESSED: Final = 0.001
"""What keeping a place costs others in each second while nobody waits: next to nothing."""
_SMOOTHING: Final = 0.1
_SPARE: Final = 2
_FADING: Final = 60.0
"""Seconds for which interactive calls are expected after the last one."""


class _Place(Struct, gc=False):
    replica: ReplicaId
    opened: float
    """When its task was first sent anywhere."""
    entered: float
    used: float
    """When a call of it began or ended last."""
    tokens: int = 0
    flying: int = 0
    coming: int = 0
    """Calls that wait to be sent."""
    lane: Lane = "interactive"
    tool: str = ""
    leaving: bool = False
    """It is to be given up at the end of the turn."""
    tails: dict[int, tuple[int, int]] = {}
    """Input and output tokens of the last call of each of its histories, by digest of the prompt."""

    @property
    def away(self) -> bool:
        """At its tools, or gone for good."""
        return not self.flying and not self.coming


class _Away(Struct, gc=False):
    tokens: int
    tool: str
    left: float
    given_up: bool
    opened: float


class _Under(Struct, gc=False):
    task: TaskId
    place: _Place
    digest: int
    expected: int
    """Tokens that should be cached still: those of the call before, if it was at this replica."""
    since: float
    idle: bool
    """The replica could have served more calls beside it."""


def _ignore(_: float) -> None:
    """Nobody counts the tasks that end."""


class Places:
    """Who has a place where. Tasks without an id get a place for the one call only.

    Args:
        speeds: what it costs to compute a prompt again.
        on_end: told when a task ended, as far as can be seen: it has stayed away.
    """

    def __init__(self, speeds: Speeds, on_end: Callable[[float], None] = _ignore) -> None:
        self._speeds = speeds
        self._on_end = on_end
        self._gaps = ToolGaps()
        self._at: dict[ReplicaId, OrderedDict[TaskId, _Place]] = {}
        """Least recently used first."""
        self._home: dict[TaskId, _Place] = {}
        self._away: OrderedDict[TaskId, _Away] = OrderedDict()
        self._under: dict[SpanId, _Under] = {}
        self._coming: dict[SpanId, _Place] = {}
        self._held: dict[ReplicaId, int] = {}
        self.capacities: dict[ReplicaId, Capacity] = {}
        self._caching: set[ReplicaId] = set()
        """Replicas that ever said that they had something cached: of others nothing can be concluded."""
        self.tenure: float | None = None
        """Mean seconds from first call to last of tasks that ended of late; ``None``: none was seen to."""
        self._interactive = float("-inf")
        """When an interactive call was sent last."""
        self._grown = 0.0
        """Mean tokens of tasks of late when they ended."""

    def __len__(self) -> int:
        return len(self._home)

    def home(self, task: TaskId) -> ReplicaId | None:
        """Where ``task`` has a place."""
        place = self._home.get(task)
        return None if place is None else place.replica

    def count(self, replica: ReplicaId) -> int:
        """Tasks with a place at ``replica``."""
        return len(self._at.get(replica, ()))

    def held(self, replica: ReplicaId) -> int:
        """Tokens of their working sets."""
        return self._held.get(replica, 0)

    def need(self, request: RouteRequest, output: int) -> int:
        """Tokens that a task needs for its place: its prompt and answer, or what it is likely to grow to."""
        away = self._away.get(request.task)
        tokens = (request.prompt[-1][1] if request.prompt else 0) + output
        return max(tokens, int(self._grown), 0 if away is None else away.tokens)

    def meet(self, replica: Replica) -> None:
        """There is such a replica: what it says of itself is where its capacity begins."""
        if replica.slots is not None and replica.id not in self.capacities:
            self.capacities[replica.id] = Capacity()
            self.capacities[replica.id].told(replica.slots)

    def room(self, replica: ReplicaId, need: int) -> bool:
        """Whether ``need`` more tokens stay warm; one task always may."""
        capacity = self.capacities.get(replica)
        return capacity is None or capacity.fits(self.count(replica), self._held.get(replica, 0), need)

    def spare(self, need: int, now: float) -> int:
        """Tokens that batch leaves free for the next interactive tasks, while there have been any of late."""
        return _SPARE * max(need, int(self._grown)) if now - self._interactive <= _FADING else 0

    def make_room(self, replica: ReplicaId, need: int, requeue: float, now: float, lane: Lane = "interactive") -> bool:
        """Give up places whose tasks have been away for longer than pays; whether there is room now.

        An interactive task need not wait for batch: tasks of batch that are not being served give up their places at
        once, and where that is not enough the others do at the end of their turns.
        """
        if self.room(replica, need):
            return True
        places = self._at.get(replica, OrderedDict[TaskId, _Place]())
        idle = [(place.lane != "batch", place.tokens, task) for task, place in places.items() if not place.flying]
        for _, _, task in sorted(idle):
            place = places[task]
            overdue = place.away and now - place.used > self._ttl(place, requeue, 1.0)
            if overdue or (lane == "interactive" and place.lane == "batch"):
                self._give_up(task, place, ended=overdue)
                if self.room(replica, need):
                    return True
        if lane == "interactive":
            self._call_back(places, need)
        return False

    def _call_back(self, places: OrderedDict[TaskId, _Place], need: int) -> None:
        """Tasks of batch give up their places at the end of their turns, as many as make room for ``need``."""
        coming = sum(place.tokens for place in places.values() if place.leaving)
        for place in places.values():
            if coming >= need:
                return
            if place.lane == "batch" and not place.leaving:
                place.leaving = True
                coming += place.tokens

    def shrink(self, replica: ReplicaId) -> None:
        """Where more is held than stays warm, pause tasks: batch before interactive, the smallest first.

        Those that are not being served are paused at once; if that is not enough, others at the end of their turns.
        As many always stay as it serves side by side.
        """
        capacity, places = self.capacities.get(replica), self._at.get(replica)
        if capacity is None or capacity.tokens is None or places is None:
            return
        over = self._held.get(replica, 0) - sum(p.tokens for p in places.values() if p.leaving) - capacity.tokens
        staying = sum(not place.leaving for place in places.values())
        rest = [(p.flying > 0, p.lane != "batch", p.tokens, task) for task, p in places.items() if not p.leaving]
        for served, _, tokens, task in sorted(rest):
            if over <= 0 or staying <= capacity.slots:
                return
            over -= tokens
            staying -= 1
            if served:
                places[task].leaving = True
            else:
                self._give_up(task, places[task], ended=False)

    def press(self, replica: ReplicaId) -> bool:
        """Somebody has waited too long: the task that has had its place longest gives it up; whether it has now.

        One that is being served does so at the end of its turn, and until then no other has to.
        """
        places = self._at.get(replica)
        if not places or any(place.leaving for place in places.values()):
            return False
        task, place = min(places.items(), key=lambda entry: entry[1].entered)
        if not place.away:
            place.leaving = True
            return False
        self._give_up(task, place, ended=False)
        return True

    def came(self, request: RouteRequest, now: float) -> None:
        """A call of a task that has a place waits to be sent: the task is back from its tools."""
        place = self._home.get(request.task)
        if place is not None:
            if place.away:
                self._gaps.returned(place.tool, now - place.used)
            place.coming += 1
            self._coming[request.call] = place

    def left(self, call: SpanId) -> None:
        """A call waits no longer, and was not sent."""
        place = self._coming.pop(call, None)
        if place is not None:
            place.coming -= 1

    def sent(
        self, replica: ReplicaId, request: RouteRequest, output: int, now: float, lane: Lane = "interactive"
    ) -> None:
        """A call was sent; its task has a place there from now on."""
        task = request.task or TaskId(f"?{request.call}")
        place = self._home.get(task)
        if place is not None and place.replica != replica:
            self._remove(task, place)
            place = None
        if place is None:
            place = self._enter(task, replica, now)
            place.lane = lane
        elif not self._arrived(request.call, place) and place.away:
            self._gaps.returned(place.tool, now - place.used)
        digest, tokens = request.prompt[-1] if request.prompt else (0, 0)
        before = next((one for one, _ in reversed(request.prompt) if one in place.tails), None)
        expected = place.tails.pop(before)[0] if before is not None else 0
        self._under[request.call] = _Under(task, place, digest, expected, place.used, self._idle(replica))
        self._tail(place, digest, tokens, output)
        if lane == "interactive":
            self._interactive = now
        place.flying += 1
        place.used = now
        self._at[replica].move_to_end(task)
        self._sweep(replica, now)

    def done(self, event: RouteDone) -> None:
        """A call has ended: how large its task has grown, whether it was found warm, where it is now."""
        under = self._under.pop(event.call, None)
        if under is None or self._home.get(under.task) is not under.place:
            return  # its task has lost the place, or has another one elsewhere
        place = under.place
        place.flying -= 1
        now = place.used if event.at is None else max(place.used, event.at)
        if event.cached_tokens:
            self._caching.add(event.replica)
        if event.cached_tokens is not None and under.expected and not event.failed and event.replica in self._caching:
            capacity = self.capacities.setdefault(event.replica, Capacity())
            held = self._held[event.replica]
            count = self.count(event.replica)
            capacity.used(under.expected, event.cached_tokens, count, held, under.since, now, idle=under.idle)
        if event.input_tokens is not None and not event.failed:
            self._tail(place, under.digest, event.input_tokens, event.output_tokens or 0)
        place.used, place.tool = now, ",".join(event.tools)
        if under.task.startswith("?"):
            self._remove(under.task, place)
        elif event.unserved and place.away:
            self._give_up(under.task, place, ended=False)  # its next call is to go where it is served
        elif place.away and not event.failed and self._ttl(place, 0.0, _UNPRESSED) <= 0:
            self._give_up(under.task, place)  # who leaves like this was never seen again
        elif place.leaving and not place.flying:  # what waits to be sent waits for a place again
            self._give_up(under.task, place, ended=False)

    def abandon(self, task: TaskId) -> None:
        """``task`` was refused: it is not expected back."""
        place = self._home.get(task)
        if place is not None and place.away:
            self._give_up(task, place, ended=False)

    def knows(self, task: TaskId) -> bool:
        """Whether ``task`` has a place or had one."""
        return task in self._home or task in self._away

    def lost(self, replica: ReplicaId) -> None:
        """A replica is gone: its tasks have to be given places elsewhere."""
        for task, place in list(self._at.get(replica, OrderedDict[TaskId, _Place]()).items()):
            self._give_up(task, place, ended=False)
        self.capacities.pop(replica, None)
        self._caching.discard(replica)

    def _idle(self, replica: ReplicaId) -> bool:
        """Whether fewer calls are under way than ``replica`` serves side by side, with one that is about to be sent.

        Asked only for as long as its capacity is counted in tasks, and these are few.
        """
        capacity = self.capacities.get(replica)
        if capacity is None or capacity.tasks is None or capacity.tokens is not None:
            return False
        return sum(place.flying for place in self._at[replica].values()) + 1 < capacity.slots

    def _arrived(self, call: SpanId, place: _Place) -> bool:
        """Whether ``call`` was waiting for its turn at ``place``; it does not any more."""
        waited = self._coming.get(call) is place
        self.left(call)
        return waited

    def _enter(self, task: TaskId, replica: ReplicaId, now: float) -> _Place:
        away = self._away.pop(task, None)
        if away is not None:
            self._gaps.returned(away.tool, now - away.left, given_up=away.given_up)
        opened = now if away is None else away.opened
        place = self._home[task] = _Place(replica=replica, opened=opened, entered=now, used=now, tails={})
        self._at.setdefault(replica, OrderedDict())[task] = place
        return place

    def _tail(self, place: _Place, digest: int, tokens: int, output: int) -> None:
        place.tails[digest] = (tokens, output)
        if len(place.tails) > _TAILS:
            del place.tails[next(iter(place.tails))]
        size = sum(one + other for one, other in place.tails.values())
        self._held[place.replica] = self._held.get(place.replica, 0) + size - place.tokens
        place.tokens = size

    def _ttl(self, place: _Place, requeue: float, cost: float) -> float:
        worth = place.tokens * self._speeds.pace(place.replica).prefill + requeue
        return self._gaps.ttl(place.tool, worth, cost)

    def _sweep(self, replica: ReplicaId, now: float) -> None:
        """Tasks that do not come back hold nothing, though nobody waits for their places."""
        task, place = next(iter(self._at[replica].items()))
        if place.away and now - place.used > self._ttl(place, 0.0, _UNPRESSED):
            self._give_up(task, place)

    def _give_up(self, task: TaskId, place: _Place, *, ended: bool = True) -> None:
        """Take the place away; ``ended``: its task may be over, and is if its last answer called no tool."""
        if ended:
            self._gaps.gone(place.tool)
        if ended and not place.tool:
            self._on_end(place.used)
            tenure = place.used - place.opened
            self.tenure = tenure if self.tenure is None else self.tenure + _SMOOTHING * (tenure - self.tenure)
            self._grown += _SMOOTHING * (place.tokens - self._grown) if self._grown else place.tokens
        self._away[task] = _Away(place.tokens, place.tool, place.used, ended, place.opened)
        if len(self._away) > _AWAY:
            self._away.popitem(last=False)
        self._remove(task, place)

    def _remove(self, task: TaskId, place: _Place) -> None:
        del self._home[task], self._at[place.replica][task]
        self._held[place.replica] -= place.tokens
