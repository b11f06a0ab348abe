"""The live fleet: which replicas there are, how they fare and how many calls each has in flight."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, structs

from headway.core.errors import NotFoundError
from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.wire.dialect import Dialect
from headway.wire.dialects import BY_NAME
from headway.wire.translate.exchange import asked_in


class ReplicaHealth(Struct, frozen=True, kw_only=True):
    """One replica as ``/health`` and the dashboard show it."""

    id: ReplicaId
    url: str
    models: tuple[str, ...]
    healthy: bool
    reason: str
    """Why it is thought healthy or not."""
    in_flight: int


class ReplicaState(Struct, frozen=True, array_like=True):
    """One replica as one process tells another."""

    replica: Replica
    healthy: bool
    reason: str


class _State(Struct, kw_only=True):
    load: ReplicaLoad
    reason: str


class LiveFleet:
    """Replicas by id, with their health and load; used from one event loop only.

    Args:
        replicas: those to begin with; they count as healthy until something says otherwise.
        on_change: told of each replica whose health turned or that left: id, healthy, why; see `watch`.
        on_update: told after anything but a load has changed.
    """

    def __init__(
        self,
        replicas: Iterable[Replica] = (),
        *,
        on_change: Callable[[ReplicaId, bool, str], None] | None = None,
        on_update: Callable[[], None] | None = None,
    ) -> None:
        self._states: dict[ReplicaId, _State] = {}
        self._leaving: dict[ReplicaId, int] = {}
        self._view: FleetView | None = None
        self._deaf: dict[str, frozenset[ReplicaId]] = {}
        self._watchers = [] if on_change is None else [on_change]
        self._on_update = on_update
        for replica in replicas:
            self.put(replica)

    def watch(self, watcher: Callable[[ReplicaId, bool, str], None]) -> None:
        """Tell ``watcher``, too, of each replica whose health turned or that left: id, healthy, why."""
        self._watchers.append(watcher)

    def __contains__(self, replica: object) -> bool:
        """Whether there is a replica of this id."""
        return replica in self._states

    def view(self) -> FleetView:
        """What a policy decides on; built anew only when a replica comes, goes or is replaced."""
        if self._view is None:
            self._view = FleetView(tuple([state.load for state in self._states.values()]))
        return self._view

    def deaf_to(self, dialect: Dialect) -> frozenset[ReplicaId]:
        """Replicas that cannot be asked on behalf of a caller of ``dialect``, translated or not."""
        try:
            return self._deaf[dialect.name]
        except KeyError:
            replicas = [load.replica for load in self.view().loads]
            deaf = frozenset([one.id for one in replicas if asked_in(dialect, spoken_by(one)) is None])
            self._deaf[dialect.name] = deaf
            return deaf

    def put(self, replica: Replica, *, healthy: bool = True, reason: str = "not probed yet") -> None:
        """Add a replica, or replace the one of the same id: calls in flight stay counted."""
        old = self._states.get(replica.id)
        in_flight = self._leaving.pop(replica.id, 0) if old is None else old.load.in_flight
        load = ReplicaLoad(replica=replica, healthy=healthy, in_flight=in_flight)
        self._states[replica.id] = _State(load=load, reason=reason)
        self._updated()

    def remove(self, replica: ReplicaId) -> None:
        """Take a replica out; its calls in flight may still end.

        Raises:
            NotFoundError: there is no such replica.
        """
        in_flight = self._state(replica).load.in_flight
        del self._states[replica]
        if in_flight:
            self._leaving[replica] = in_flight
        self._updated()
        for watcher in self._watchers:
            watcher(replica, False, "removed")  # noqa: FBT003 - the watchers' signature

    def started(self, replica: ReplicaId) -> None:
        """A call was sent to ``replica``; each needs exactly one `finished`.

        Raises:
            NotFoundError: there is no such replica.
        """
        self._state(replica).load.in_flight += 1

    def finished(self, replica: ReplicaId) -> None:
        """A call to ``replica`` ended, well or not.

        Raises:
            ValueError: there was none in flight: a call was ended twice.
        """
        state = self._states.get(replica)
        if state is not None and state.load.in_flight:
            state.load.in_flight -= 1
        elif left := self._leaving.pop(replica, 0):
            if left > 1:
                self._leaving[replica] = left - 1
        else:
            msg = f"finished({replica!r}): the replica has no call in flight"
            raise ValueError(msg)

    def mark(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        """Say how ``replica`` fares, and why; a replica that left already is passed over."""
        state = self._states.get(replica)
        if state is None:
            return
        turned = state.load.healthy != healthy
        state.load.healthy, state.reason = healthy, reason
        if turned:
            for watcher in self._watchers:
                watcher(replica, healthy, reason)
        if turned and self._on_update is not None:
            self._on_update()

    def declare(self, replica: ReplicaId, models: tuple[str, ...]) -> None:
        """Say which models ``replica`` serves; a replica that left already is passed over."""
        state = self._states.get(replica)
        if state is not None:
            self.put(
                structs.replace(state.load.replica, models=models), healthy=state.load.healthy, reason=state.reason
            )

    def get(self, replica: ReplicaId) -> Replica:
        """The replica of this id.

        Raises:
            NotFoundError: there is no such replica.
        """
        return self._state(replica).load.replica

    def models(self) -> tuple[str, ...]:
        """Every model name that a replica declares, each once, in the fleet's order."""
        return tuple(dict.fromkeys(name for load in self.view().loads for name in load.replica.models))

    def health(self) -> tuple[ReplicaHealth, ...]:
        """All replicas as a person wants to see them."""
        return tuple(
            ReplicaHealth(
                id=state.load.replica.id,
                url=state.load.replica.url,
                models=state.load.replica.models,
                healthy=state.load.healthy,
                reason=state.reason,
                in_flight=state.load.in_flight,
            )
            for state in self._states.values()
        )

    def states(self) -> tuple[ReplicaState, ...]:
        """All replicas as another process is to see them."""
        return tuple(
            ReplicaState(state.load.replica, state.load.healthy, state.reason) for state in self._states.values()
        )

    def take_over(self, states: Iterable[ReplicaState]) -> None:
        """Be as another process sees the fleet. Calls in flight are this process's own."""
        told = {state.replica.id: state for state in states}
        for gone in self._states.keys() - told.keys():
            self.remove(gone)
        for name, state in told.items():
            known = self._states.get(name)
            if known is None or known.load.replica != state.replica:
                self.put(state.replica)
            self.mark(name, state.healthy, state.reason)

    def counted(self, in_flight: Mapping[ReplicaId, int]) -> None:
        """So many calls are on each replica, by the count of those who send them: for whoever sends none."""
        for name, state in self._states.items():
            state.load.in_flight = in_flight.get(name, 0)

    def _updated(self) -> None:
        self._view = None
        self._deaf.clear()
        if self._on_update is not None:
            self._on_update()

    def _state(self, replica: ReplicaId) -> _State:
        try:
            return self._states[replica]
        except KeyError:
            known = ", ".join(self._states) or "none"
            raise NotFoundError(f"There is no replica {replica!r}.", fix=f"The fleet has: {known}.") from None


def spoken_by(replica: Replica) -> list[Dialect]:
    """The dialects that ``replica`` speaks, the best first; names that nobody knows are passed over."""
    return [BY_NAME[name] for name in replica.speaks if name in BY_NAME]
