"""A task's place at a replica: the memory that its prompts stay warm in while it is at its tools.

What ThunderAgent calls a program's residence and Continuum a pinned KV: tasks, not calls, are admitted, no more than
the replica keeps warm; the others wait, and a place is given up when its task stays away for longer than pays.
"""

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.core.task import SpanId, TaskId
from headway.policy.admission.capacity import Capacity
from headway.policy.admission.gaps import ToolGaps
from headway.policy.route import RouteDone, RouteRequest
from headway.policy.speed import Speeds

_TAILS: Final = 16
"""Separate histories of one task (its sub-agents) that are counted."""
_AWAY: Final = 50_000
_UNPRESSED: Final = 0.001
"""What keeping a place costs others in each second while nobody waits: next to nothing."""
_SMOOTHING: Final = 0.1


class _Place(Struct, gc=False):
    replica: ReplicaId
    entered: float
    used: float
    """When a call of it began or ended last."""
    tokens: int = 0
    flying: int = 0
    tool: str = ""
    leaving: bool = False
    """It is to be given up at the end of the turn."""
    tails: dict[int, tuple[int, int]] = {}
    """Input and output tokens of the last call of each of its histories, by digest of the prompt."""


class _Away(Struct, gc=False):
    tokens: int
    tool: str
    left: float
    given_up: bool


class _Under(Struct, gc=False):
    task: TaskId
    place: _Place
    digest: int
    expected: int
    """Tokens that should be cached still: those of the call before, if it was at this replica."""
    since: float


class Places:
    """Who has a place where. Tasks without an id get a place for the one call only."""

    def __init__(self, speeds: Speeds) -> None:
        self._speeds = speeds
        self._gaps = ToolGaps()
        self._at: dict[ReplicaId, OrderedDict[TaskId, _Place]] = {}
        """Least recently used first."""
        self._home: dict[TaskId, _Place] = {}
        self._away: OrderedDict[TaskId, _Away] = OrderedDict()
        self._under: dict[SpanId, _Under] = {}
        self._held: dict[ReplicaId, int] = {}
        self.capacities: dict[ReplicaId, Capacity] = {}
        self.tenure: float | None = None
        """Mean seconds that tasks of late had a place; ``None``: none has given its up yet."""
        self._grown = 0.0
        """Mean tokens of tasks of late when they ended."""

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

    def room(self, replica: ReplicaId, need: int) -> bool:
        """Whether ``need`` more tokens stay warm; one task always may."""
        capacity = self.capacities.get(replica)
        if capacity is None or capacity.tokens is None or not self._at.get(replica):
            return True
        return self._held.get(replica, 0) + need <= capacity.tokens

    def make_room(self, replica: ReplicaId, need: int, requeue: float, now: float) -> bool:
        """Give up places whose tasks have been away for longer than pays; whether there is room now."""
        if self.room(replica, need):
            return True
        places = self._at.get(replica, OrderedDict[TaskId, _Place]())
        idle = [(place.tokens, task) for task, place in places.items() if not place.flying]
        for _, task in sorted(idle):
            place = places[task]
            if now - place.used > self._ttl(place, requeue, 1.0):
                self._give_up(task, place)
                if self.room(replica, need):
                    return True
        return False

    def shrink(self, replica: ReplicaId) -> None:
        """Where more is held than stays warm, pause tasks: the smallest at their tools at once, then others.

        Those that are being served give their places up at the end of the turn. One always stays.
        """
        capacity, places = self.capacities.get(replica), self._at.get(replica)
        if capacity is None or capacity.tokens is None or places is None:
            return
        over = self._held.get(replica, 0) - sum(p.tokens for p in places.values() if p.leaving) - capacity.tokens
        staying = sum(not place.leaving for place in places.values())
        for acting in (True, False):
            rest = sorted((p.tokens, task) for task, p in places.items() if not p.leaving and (not p.flying) is acting)
            for tokens, task in rest:
                if over <= 0 or staying <= 1:
                    return
                over -= tokens
                staying -= 1
                if acting:
                    self._give_up(task, places[task], ended=False)
                else:
                    places[task].leaving = True

    def press(self, replica: ReplicaId) -> bool:
        """Somebody has waited too long: the task that has had its place longest gives it up; whether it has now.

        One that is being served does so at the end of its turn, and until then no other has to.
        """
        places = self._at.get(replica)
        if not places or any(place.leaving for place in places.values()):
            return False
        task, place = min(places.items(), key=lambda entry: entry[1].entered)
        if place.flying:
            place.leaving = True
            return False
        self._give_up(task, place, ended=False)
        return True

    def sent(self, replica: ReplicaId, request: RouteRequest, output: int, now: float) -> None:
        """A call was sent; its task has a place there from now on."""
        task = request.task or TaskId(f"?{request.call}")
        place = self._home.get(task)
        if place is not None and place.replica != replica:
            self._remove(task, place)
            place = None
        if place is None:
            place = self._enter(task, replica, now)
        elif not place.flying:
            self._gaps.returned(place.tool, now - place.used)
        digest, tokens = request.prompt[-1] if request.prompt else (0, 0)
        before = next((one for one, _ in reversed(request.prompt) if one in place.tails), None)
        expected = place.tails.pop(before)[0] if before is not None else 0
        self._under[request.call] = _Under(task, place, digest, expected, place.used)
        self._tail(place, digest, tokens, output)
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
        if event.cached_tokens is not None and under.expected and not event.failed:
            capacity = self.capacities.setdefault(event.replica, Capacity())
            held = self._held[event.replica]
            capacity.used(under.expected, event.cached_tokens, held, under.since, now)
        if event.input_tokens is not None and not event.failed:
            self._tail(place, under.digest, event.input_tokens, event.output_tokens or 0)
        place.used, place.tool = now, ",".join(event.tools)
        if under.task.startswith("?"):
            self._remove(under.task, place)
        elif place.leaving and not place.flying:
            self._give_up(under.task, place, ended=False)

    def lost(self, replica: ReplicaId) -> None:
        """A replica is gone: its tasks have to be given places elsewhere."""
        for task, place in list(self._at.get(replica, OrderedDict[TaskId, _Place]()).items()):
            self._give_up(task, place, ended=False)
        self.capacities.pop(replica, None)

    def _enter(self, task: TaskId, replica: ReplicaId, now: float) -> _Place:
        away = self._away.pop(task, None)
        if away is not None:
            self._gaps.returned(away.tool, now - away.left, given_up=away.given_up)
        place = self._home[task] = _Place(replica=replica, entered=now, used=now, tails={})
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
        for task, place in list(self._at[replica].items())[:4]:
            if not place.flying and now - place.used > self._ttl(place, 0.0, _UNPRESSED):
                self._give_up(task, place)

    def _give_up(self, task: TaskId, place: _Place, *, ended: bool = True) -> None:
        """Take the place away; ``ended``: because its task is thought to be over."""
        if ended:
            self._gaps.gone(place.tool)
            tenure = place.used - place.entered
            self.tenure = tenure if self.tenure is None else self.tenure + _SMOOTHING * (tenure - self.tenure)
            self._grown += _SMOOTHING * (place.tokens - self._grown) if self._grown else place.tokens
        self._away[task] = _Away(place.tokens, place.tool, place.used, ended)
        if len(self._away) > _AWAY:
            self._away.popitem(last=False)
        self._remove(task, place)

    def _remove(self, task: TaskId, place: _Place) -> None:
        del self._home[task], self._at[place.replica][task]
        self._held[place.replica] -= place.tokens
