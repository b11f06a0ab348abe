"""Where calls are sent, told to other workers and heard of them: beside the calls, and never waited for."""

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Final, Protocol

from headway.core.clock import Clock
from headway.core.fleet import ReplicaId
from headway.core.task import TaskId
from headway.gateway.bus import Bus
from headway.gateway.exposition import family
from headway.policy.route import RouteEvent, RouteRequest
from headway.policy.whereabouts import Telling, heard

TOPIC: Final = "whereabouts"
_GATHER_SECONDS: Final = 0.002
"""What is to be told waits so long for more to be told with it."""
RECENT_BYTES: Final = 4 << 20

Hears = Callable[[bytes], None]


class Channel(Protocol):
    """How messages reach other workers; lost ones are not missed."""

    def open(self, hears: Hears) -> None:
        """Have ``hears`` told what others tell, on the event loop; one's own may be among it."""
        ...

    def tell(self, message: bytes) -> bool:
        """Send a message to the others, without waiting; whether it is on its way."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why others are not heard now; ``None``: they are."""
        ...

    async def close(self) -> None:
        """Tell and hear no more."""
        ...


class BusChannel:
    """To the workers of one machine, by way of the process that looks after them.

    Args:
        bus: this worker's.
    """

    trouble = None

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def open(self, hears: Hears) -> None:
        """As `Channel.open`."""
        self._bus.on(TOPIC, hears)

    def tell(self, message: bytes) -> bool:
        """As `Channel.tell`."""
        self._bus.publish(TOPIC, message)
        return True

    async def close(self) -> None:
        """The bus is another's."""


class Whereabouts:
    """What this worker tells and hears of where calls are sent; on the event loop.

    Args:
        me: a name that no other worker has.
        fleet: the replicas' ids.
        clock: for times.
        channel: to the other workers, closed with this; ``None``: the bus.
    """

    def __init__(self, me: str, fleet: Container[object], clock: Clock, channel: Channel | None = None) -> None:
        self._me = me
        self._fleet = fleet
        self._clock = clock
        self._channel = channel
        self._learn: Callable[[Sequence[RouteEvent]], None] | None = None
        self._telling = Telling(me)
        self._timer: asyncio.TimerHandle | None = None
        self._calls = dict.fromkeys(("told", "not_told", "heard"), 0)
        self._garbled = 0

    def open(self, bus: Bus, learn: Callable[[Sequence[RouteEvent]], None]) -> None:
        """Begin: ``learn`` is told what others do."""
        self._learn = learn
        self._channel = self._channel or BusChannel(bus)
        self._channel.open(self._hear)

    @property
    def trouble(self) -> str | None:
        """Why it is not known where others send calls; ``None``: it is."""
        return None if self._channel is None else self._channel.trouble

    def sent(self, replica: ReplicaId, request: RouteRequest, at: float) -> None:
        """A call was sent to ``replica`` at ``at`` (epoch seconds)."""
        self._telling.sent(replica, request, at)
        self._calls["told"] += 1
        self._soon()

    def unserved(self, replica: ReplicaId, task: TaskId) -> None:
        """``replica`` could not serve a call of ``task``."""
        self._telling.unserved(replica, task)
        self._calls["told"] += 1
        self._soon()

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_whereabouts_total",
            "counter",
            "Calls of which workers told each other where they were sent, by what became of that.",
            [({"outcome": outcome}, count) for outcome, count in self._calls.items()],
        )
        yield from family(
            "headway_whereabouts_garbled_total",
            "counter",
            "Messages of others that could not be read.",
            [({}, self._garbled)],
        )
        yield from family(
            "headway_whereabouts_workers",
            "gauge",
            "Workers that hear where the others send calls.",
            [({}, int(self.trouble is None))],
        )

    async def close(self) -> None:
        """Tell and hear no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._channel is not None:
            await self._channel.close()

    def _soon(self) -> None:
        if self._telling.full:
            self._tell()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._tell)

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        count = len(self._telling)
        if count and self._channel is not None and not self._channel.tell(self._telling.take()):
            self._calls["told"] -= count
            self._calls["not_told"] += count

    def _hear(self, message: bytes) -> None:
        try:
            events = heard(message, self._me, self._fleet, self._clock.now())
        except ValueError:  # another version of Headway may share the Redis
            self._garbled += 1
            return
        if events and self._learn is not None:
            self._calls["heard"] += len(events)
            self._learn(events)


class Recent:
    """What was told last, for workers that come later."""

    def __init__(self, limit: int = RECENT_BYTES) -> None:
        self._limit = limit
        self._messages: deque[bytes] = deque()
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        return iter(tuple(self._messages))

    def add(self, message: bytes) -> None:
        """Keep it, and forget the oldest for it."""
        self._messages.append(message)
        self.bytes += len(message)
        while self.bytes > self._limit:
            self.bytes -= len(self._messages.popleft())
