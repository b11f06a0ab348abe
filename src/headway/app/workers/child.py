"""A worker: one of the processes that serve the gateway's port, for as long as the one that started it lives."""

import asyncio
import logging
import pickle
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

import msgspec
import uvloop
from msgspec import Struct

from headway.app.logs import log_to_stderr
from headway.app.reloading import RELOAD_ACTION, RELOAD_PATH, Reloaded
from headway.app.service import Front, Service
from headway.app.stopping import unless
from headway.app.workers import words
from headway.core.errors import WorkerError
from headway.core.fleet import ReplicaId
from headway.gateway.admin import Changed, Order
from headway.gateway.caches.figures import Report
from headway.gateway.caches.steering import dropped_as_told
from headway.gateway.collector import collect_seldom
from headway.gateway.fleet import LiveFleet, ReplicaState
from headway.gateway.line import Line
from headway.gateway.shelves import LineShelf, RedisShelf
from headway.gateway.siblings import Siblings

_LOG: Final = logging.getLogger(__name__)
_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""They reach the whole group; the one that started us says what is to be done."""


class Task(Struct, frozen=True):
    """What a worker is to serve."""

    service: Service
    port: int
    fleet: tuple[ReplicaState, ...]


class Worker:
    """What answers the line."""

    def __init__(self, line: Line, stack: AsyncExitStack) -> None:
        self._line = line
        self._stack = stack
        self._front: Front | None = None
        self._fleet = LiveFleet(on_change=self._turned)
        self._told = False
        """What changes in the fleet is what the other end says."""
        self.drain = asyncio.Event()
        self.at_once = asyncio.Event()
        self.seconds = 0.0
        """What calls under way may take to end."""
        line.on_question(words.BEGIN, self._begin)
        line.on_question(words.FIGURES, self._figures)
        line.on_question(words.IN_FLIGHT, self._in_flight)
        line.on_question(words.CACHE, self._cache)
        line.on_question(words.DROP, self._drop)
        line.on_question(words.CHANGE, self._change)
        line.on_news(words.FLEET, self._take_over)
        line.on_news(words.BUS, self._hear)
        line.on_news(words.DRAIN, self._drained)
        line.on_news(words.AT_ONCE, lambda _: self.at_once.set())

    async def close(self) -> None:
        """Let no more calls in, and those under way end."""
        if self._front is not None:
            await self._front.gateway.close(self.seconds)

    def orphaned(self) -> None:
        """The one that started us is gone: what is under way may end, and we after it."""
        if not self.drain.is_set():
            _LOG.error("the process that looks after the workers is gone; this one lets its calls end and stops")
            self.drain.set()

    async def metrics(self) -> bytes:
        """As `Whole.metrics`."""
        return await self._line.ask(words.FIGURES, b"", 5.0)

    async def in_flight(self) -> Mapping[ReplicaId, int]:
        """As `Whole.in_flight`."""
        return words.read_in_flight(await self._line.ask(words.IN_FLIGHT, b"", 5.0))

    async def caches(self) -> Sequence[Report]:
        """As `Whole.caches`."""
        return [words.read_cache(one) for one in words.read_caches(await self._line.ask(words.CACHE, b"", 5.0))]

    async def dropped(self, message: bytes) -> Sequence[int]:
        """As `Whole.dropped`."""
        return words.read_counts(await self._line.ask(words.DROP, message, 5.0))

    async def _begin(self, payload: bytes) -> bytes:
        task: Task = pickle.loads(payload)  # noqa: S301 - from the process that started us, over a socket of our own
        log_to_stderr(task.service.log)
        self.seconds = task.service.drain
        self._be(task.fleet)
        tasks = task.service.tasks
        shelf = LineShelf(self._line) if tasks.redis is None else RedisShelf(tasks.redis, tasks.ttl)
        front = Front(task.service, self._fleet, self._stack, Siblings(shelf, tasks.patience))
        front.gateway.whole = self
        front.gateway.bus.join(lambda topic, news: self._line.tell(words.BUS, words.encode(words.News(topic, news))))
        front.gateway.admin.on_change("POST", RELOAD_PATH, RELOAD_ACTION, self._reload, needs="manage")
        await front.start(task.port, shared=True)
        self._front = front
        collect_seldom()
        return b""

    async def _change(self, payload: bytes) -> bytes:
        service: Service = pickle.loads(payload)  # noqa: S301 - as above
        if self._front is not None:
            await self._front.change(service)
        return b""

    def _take_over(self, payload: bytes) -> None:
        self._be(words.read_fleet(payload))
        if self._front is not None:
            self._front.gateway.upstream.keep(self._fleet)

    def _be(self, fleet: tuple[ReplicaState, ...]) -> None:
        self._told = True
        self._fleet.take_over(fleet)
        self._told = False

    async def _reload(self, _: Order) -> Changed:
        told = await self._line.ask(words.RELOAD, b"")
        return msgspec.msgpack.decode(told, type=Reloaded).changed()

    async def _figures(self, _: bytes) -> bytes:
        return b"" if self._front is None else self._front.gateway.metrics_page()

    async def _in_flight(self, _: bytes) -> bytes:
        return words.encode({load.replica.id: load.in_flight for load in self._fleet.view().loads})

    async def _cache(self, _: bytes) -> bytes:
        cache = None if self._front is None else self._front.gateway.cache
        return b"" if cache is None else words.encode(cache.report())

    async def _drop(self, message: bytes) -> bytes:
        cache = None if self._front is None else self._front.gateway.cache
        return b"" if cache is None else words.encode(dropped_as_told(cache, message))

    def _hear(self, payload: bytes) -> None:
        if self._front is not None:
            news = words.read_news(payload)
            self._front.gateway.bus.hear(news.topic, news.payload)

    def _drained(self, payload: bytes) -> None:
        self.seconds = words.read_seconds(payload)
        self.drain.set()

    def _turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        """Found out by a call of ours; that it is up again is found out elsewhere."""
        if not healthy and not self._told:
            self._line.tell(words.DOWN, words.encode(words.Down(replica, reason)))


async def work(end: socket.socket) -> None:
    """Serve until told to stop over ``end``, or until its other end is gone."""
    line = Line()
    async with AsyncExitStack() as stack:
        worker = Worker(line, stack)
        line.ended.add_done_callback(lambda _: worker.orphaned())
        await line.open(end)
        stack.push_async_callback(line.close)
        await worker.drain.wait()
        await unless(worker.at_once, worker.close())


def main() -> None:
    """Serve on the line whose descriptor is the only argument."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    try:
        uvloop.run(work(socket.socket(fileno=int(sys.argv[1]))))
    except WorkerError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
