"""The process that looks after workers: starts them, and again those that die, and speaks for all of them together."""

import asyncio
import logging
import pickle
import secrets
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from msgspec import structs

from headway.app.beside import Beside
from headway.app.reloading import Reload
from headway.app.service import Ready, Service
from headway.app.workers import words
from headway.app.workers.child import Task
from headway.app.workers.process import WorkerProcess
from headway.core.clock import SystemClock
from headway.core.errors import HeadwayError
from headway.core.fleet import ReplicaId
from headway.gateway.bus import Bus
from headway.gateway.deadlines import Deadlines, beat_for
from headway.gateway.door_opening import declare_tenants
from headway.gateway.exposition import family
from headway.gateway.line import Line
from headway.gateway.listening import reserve
from headway.gateway.metrics import process_figures
from headway.gateway.policies import load
from headway.gateway.shelves import MemoryShelf, seed_in
from headway.gateway.summing import counted, summed
from headway.gateway.upstream import Upstream
from headway.gateway.whereabouts import TOPIC, Recent

_LOG: Final = logging.getLogger(__name__)
_ANSWER_SECONDS: Final = 1.0
"""What a worker may take to tell its figures; where it takes longer, those count that it told last."""
_LOOK_SECONDS: Final = 5.0
"""How often figures are asked for unasked: a worker that dies takes no more with it, the dashboard is no older."""


class Several:
    """Workers, and what runs beside them once.

    Raises:
        HeadwayError: it cannot be served from what was asked for.
    """

    def __init__(self, service: Service, stack: AsyncExitStack) -> None:
        self.service = service
        self._stack = stack
        self._reload: Reload | None = None
        load(service.policy)
        self._telling = False
        self._beside = Beside(service, stack, self._fleet_changed)
        self.bus = Bus()
        self.bus.join(lambda topic, payload: self._pass_on(words.encode(words.News(topic, payload)), None))
        self._recent = Recent()
        self.bus.on(TOPIC, self._recent.add)
        self._workers = [WorkerProcess(number, self) for number in range(1, service.workers + 1)]
        self._port = 0
        self._shelf = MemoryShelf()
        self.seed = secrets.randbits(32)
        self._departed = b""
        """What workers counted that are gone."""

    async def start(self) -> Ready:
        """Start everything, the workers first: that the port is taken is the likeliest failure."""
        service, stack = self.service, self._stack
        self._beside.reserve_engines()
        if service.keeping is not None:
            declare_tenants(service.keeping)
        kept = stack.enter_context(reserve(service.host, service.port))
        self._port = kept.getsockname()[1]
        if service.tasks.redis is not None:
            self.seed = await asyncio.to_thread(seed_in, service.tasks.redis, service.tasks.ttl)
        stack.push_async_callback(self._stop)
        await asyncio.gather(*[worker.start() for worker in self._workers])
        looking = asyncio.get_running_loop().create_task(self._look())
        stack.callback(looking.cancel)
        clock = SystemClock()
        deadlines = Deadlines(clock, beat_for(service.limits))
        deadlines.start()
        stack.callback(deadlines.stop)
        upstream = Upstream(service.limits, clock, deadlines)
        stack.push_async_callback(upstream.close)
        return await self._beside.start(kept.getsockname()[0], self._port, upstream.fetch)

    async def in_flight(self) -> int:
        """Calls under way."""
        return sum((await self._all_in_flight()).values())

    async def close(self, seconds: float) -> None:
        """Have all workers end once their calls have."""
        await asyncio.gather(*[worker.drain(seconds) for worker in self._workers])

    def on_reload(self, reload: Reload) -> None:
        """Have this done when a worker is asked to read the configuration again."""
        self._reload = reload

    async def change(self, service: Service) -> None:
        """Have all workers serve this from now on; see `Front.change`."""
        if service.keeping is not None:
            await asyncio.to_thread(declare_tenants, service.keeping)
        await self._beside.add_replicas(service)
        self._tell_fleet()
        self.service = service
        await asyncio.gather(*[worker.change() for worker in self._workers])
        self._beside.remove_replicas(service)

    async def _stop(self) -> None:
        await asyncio.gather(*[worker.stop() for worker in self._workers])

    # --- what a worker's process asks and tells

    def task(self) -> bytes:
        """What a worker that starts is to serve."""
        keeping = self.service.keeping
        service = structs.replace(
            self.service,
            upstreams=(),
            embedded=None,
            keeping=None if keeping is None else structs.replace(keeping, tenants=()),
        )
        return pickle.dumps(Task(service, self._port, self._beside.fleet.states()))

    def connect(self, line: Line, worker: WorkerProcess) -> None:
        """What a worker may say on its line."""
        line.on_news(words.BUS, lambda payload: self._heard(payload, worker))
        line.on_news(words.DOWN, self._down)
        self._shelf.serve(line)
        line.on_question(words.FIGURES, self._whole_page)
        line.on_question(words.CACHE, self._caches)
        line.on_question(words.DROP, partial(self._drop, worker))
        line.on_question(words.IN_FLIGHT, self._whole_in_flight)
        line.on_question(words.RELOAD, self._reloaded)

    def came(self, worker: WorkerProcess) -> None:
        """A worker serves: it hears what the others were told before it came."""
        for message in self._recent:
            worker.tell(words.BUS, words.encode(words.News(TOPIC, message)))

    def gone(self, worker: WorkerProcess) -> None:
        """A worker has died, or ended: what it counted stays counted."""
        self._departed = counted(self._departed, worker.page)
        worker.page = b""

    async def _reloaded(self, _: bytes) -> bytes:
        if self._reload is None:
            raise HeadwayError("The gateway is still starting.", fix="Try again in a moment.")
        return words.encode(await self._reload())

    # --- of all workers

    def _fleet_changed(self) -> None:
        """Tell the workers, once for all changes of one turn of the event loop."""
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell_fleet)

    def _tell_fleet(self) -> None:
        self._telling = False
        fleet = words.encode(self._beside.fleet.states())
        for worker in self._workers:
            worker.tell(words.FLEET, fleet)

    def _heard(self, payload: bytes, teller: WorkerProcess) -> None:
        news = words.read_news(payload)
        self.bus.hear(news.topic, news.payload)
        self._pass_on(payload, teller)

    def _pass_on(self, payload: bytes, teller: WorkerProcess | None) -> None:
        for worker in self._workers:
            if worker is not teller:
                worker.tell(words.BUS, payload)

    def _down(self, payload: bytes) -> None:
        down = words.read_down(payload)
        self._beside.fleet.mark(down.replica, healthy=False, reason=down.reason)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._refresh()
            self._beside.fleet.counted(await self._all_in_flight())

    async def _refresh(self) -> None:
        async def ask(worker: WorkerProcess) -> None:
            page = await worker.asked(words.FIGURES, _ANSWER_SECONDS)
            if page is not None:
                worker.page = page

        await asyncio.gather(*[ask(worker) for worker in self._workers])

    async def _whole_page(self, _: bytes) -> bytes:
        await self._refresh()
        own = "\n".join(
            [
                *process_figures(),
                *family("headway_workers", "gauge", "Workers that serve.", [({}, self._up())]),
                *family(
                    "headway_worker_ends_total",
                    "counter",
                    "Workers that ended without being told to, and were started again.",
                    [({}, sum(worker.ends for worker in self._workers))],
                ),
                "",
            ]
        ).encode()
        return summed([own, *[worker.page for worker in self._workers]], self._departed) + self._beside.page()

    async def _all_in_flight(self) -> Counter[ReplicaId]:
        told = await asyncio.gather(*[worker.asked(words.IN_FLIGHT, _ANSWER_SECONDS) for worker in self._workers])
        total: Counter[ReplicaId] = Counter()
        for one in told:
            if one is not None:
                total.update(words.read_in_flight(one))
        return total

    async def _whole_in_flight(self, _: bytes) -> bytes:
        return words.encode(dict(await self._all_in_flight()))

    async def _caches(self, _: bytes) -> bytes:
        told = await asyncio.gather(*[worker.asked(words.CACHE, _ANSWER_SECONDS) for worker in self._workers])
        return words.encode([one for one in told if one])

    async def _drop(self, teller: WorkerProcess, message: bytes) -> bytes:
        others = [worker for worker in self._workers if worker is not teller]
        told = await asyncio.gather(*[worker.asked(words.DROP, _ANSWER_SECONDS, message) for worker in others])
        return words.encode([words.read_count(one) for one in told if one])

    def _up(self) -> int:
        return sum(worker.up for worker in self._workers)
