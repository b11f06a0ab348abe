"""What `headway serve` runs: store, engines, gateway, prober and dashboard, from start to graceful end."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from headway.app.dashboard.server import Dashboard
from headway.app.dashboard.site import site
from headway.app.meaning import opening_of
from headway.core.clock import SystemClock
from headway.core.config import Limits, Recording
from headway.core.errors import BadInputError
from headway.core.fleet import Replica, ReplicaId
from headway.core.log_lines import LogFormat
from headway.core.money import Price
from headway.gateway.app import Gateway
from headway.gateway.caches.opening import Caching
from headway.gateway.door_opening import Keeping, OwnModels, open_door
from headway.gateway.engines import EmbeddedFleet, EngineSpec
from headway.gateway.fleet import LiveFleet
from headway.gateway.health import Prober
from headway.gateway.hosts import is_loopback
from headway.gateway.ids import Ids
from headway.gateway.naming import Naming
from headway.gateway.observer.endpoint import Endpoint
from headway.gateway.observer.process import ObserverProcess
from headway.gateway.observer.watch import Watch
from headway.gateway.policies import DEFAULT, load
from headway.gateway.scheduling import Scheduling, open_turns, wants_all
from headway.gateway.tariff import Tariff
from headway.gateway.wiring import Passes
from headway.policy.identify import Identifier
from headway.policy.models.catalog import Catalog
from headway.trace.follow import Follower
from headway.trace.record import Recorder
from headway.trace.store import Store

DRAIN_SECONDS: Final = 30.0
"""What calls under way may take to end after the first signal."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_LOG = logging.getLogger(__name__)


class Embedded(Struct, frozen=True, kw_only=True):
    """Local engines to start."""

    spec: EngineSpec
    count: int


class Service(Struct, frozen=True, kw_only=True):
    """What to serve, and how."""

    upstreams: tuple[Replica, ...] = ()
    embedded: Embedded | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    allow_hosts: tuple[str, ...] = ()
    """Public names by which a gateway on loopback may be called."""
    admin_port: int | None = 0
    """Of the dashboard, on 127.0.0.1 only; 0: a free one; ``None``: no dashboard."""
    store: Path | None = None
    """``None``: nothing is recorded."""
    keep_text: bool = False
    policy: str = DEFAULT
    scheduling: Scheduling | None = None
    """How calls take turns; ``None``: each is sent as it comes."""
    limits: Limits = Limits()
    drain: float = DRAIN_SECONDS
    export: Endpoint | None = None
    """Where recorded spans go on to."""
    log: LogFormat = "text"
    log_calls: bool = False
    """A line of the log for each call, where calls are recorded."""
    catalog: Catalog | None = None
    """What names of models stand for; ``None``: for themselves."""
    keeping: Keeping | None = None
    """Keys that callers need; ``None``: nobody is asked for one."""
    caching: Caching | None = None
    """Which answers are kept to be given again; ``None``: none are."""
    prices: dict[str, Price] = {}
    """Own prices of models, before the list's."""


class ReadyReplica(Struct, frozen=True, kw_only=True):
    """One replica, as the announcement names it."""

    id: ReplicaId
    url: str
    pid: int | None
    """Of an engine that Headway started."""


class Ready(Struct, frozen=True, kw_only=True):
    """The announcement: where everything is, once it is there."""

    ready: bool = True
    url: str
    admin: str | None
    store: str | None
    replicas: tuple[ReadyReplica, ...]


async def serve(service: Service, announce: Callable[[Ready], None]) -> signal.Signals | None:
    """Serve until SIGTERM or SIGINT, then let calls under way end; a second signal ends them at once.

    Nothing that was started is left when this returns or raises.

    Returns:
        The signal that broke off the start; ``None``: it has served.

    Raises:
        HeadwayError: something could not be started.
    """
    drain, at_once = asyncio.Event(), asyncio.Event()
    async with AsyncExitStack() as stack:
        told = stack.enter_context(_signals(drain, at_once))
        running = _Running(service, stack)
        ready = await _unless(drain, running.start(announce))
        await drain.wait()
        calls = running.in_flight()
        _LOG.info(
            "stopping: %s under way, %g s for them to end; signal again to stop at once",
            "1 call" if calls == 1 else f"{calls} calls",
            service.drain,
            extra={"event": "stopping"},
        )
        await _unless(at_once, running.gateway.close(service.drain))
    _LOG.info("stopped", extra={"event": "stopped"})
    return None if ready else told[0]


@contextmanager
def _signals(first: asyncio.Event, second: asyncio.Event) -> Generator[list[signal.Signals]]:
    """Within, SIGTERM and SIGINT do no more than set an event: the first signal ``first``, all others ``second``.

    Gives the list of those that came.
    """
    loop = asyncio.get_running_loop()
    told: list[signal.Signals] = []

    def arrived(number: signal.Signals) -> None:
        told.append(number)
        (second if first.is_set() else first).set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, arrived, number)
    try:
        yield told
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _unless(event: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do ``work``, or break it off when ``event`` is set first; whether it was done."""
    waiting, working = asyncio.ensure_future(event.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait({waiting, working}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        broken_off = working.cancel()
        await asyncio.wait({waiting, working})
    if not broken_off:
        working.result()
    return not broken_off


class _Running:
    """The parts of a service; each is ended by ``stack``, last started first."""

    def __init__(self, service: Service, stack: AsyncExitStack) -> None:
        self._service = service
        self._stack = stack
        self._logged: ReplicaId | None = None
        """Of this replica it is in the log already that it went down."""
        self._observer: ObserverProcess | None = None
        self._begin = 0
        """Where in the store the spans of this run begin."""
        self.fleet = LiveFleet(service.upstreams, on_change=self._turned)
        policy = load(service.policy)
        if not service.upstreams and service.embedded is None:
            raise BadInputError(
                "There is no engine to serve from.",
                fix="Name one with --upstream URL (may be repeated), or start local ones with --embedded 2.",
            )
        self._recorder = self._open_recorder()
        clock = SystemClock()
        self._door = None if service.keeping is None else open_door(service.keeping, self.fleet, service.prices, clock)
        self._tariff = Tariff(service.prices, OwnModels(self.fleet)) if service.caching is not None else None
        scheduling = service.scheduling
        measure = scheduling is not None or wants_all(policy)
        identifier = Identifier(new_id=Ids(clock).task, measure=measure)
        self.gateway = Gateway(
            self.fleet,
            policy=policy,
            identifier=identifier,
            recorder=self._recorder,
            limits=service.limits,
            recording=Recording(enabled=self._recorder is not None, keep_text=service.keep_text),
            clock=clock,
            passes=Passes(
                door=self._door,
                naming=None if service.catalog is None else Naming(service.catalog),
                cache=opening_of(service.caching),
                tariff=self._tariff,
                turns=open_turns(scheduling, policy, self.fleet, identifier, clock),
                batch=frozenset() if scheduling is None else scheduling.batch,
            ),
        )

    def in_flight(self) -> int:
        """Calls under way."""
        return sum(load.in_flight for load in self.fleet.view().loads)

    async def start(self, announce: Callable[[Ready], None]) -> None:
        """Start everything, the port first: that one is taken is the likeliest failure, and the quickest to see."""
        service, stack = self._service, self._stack
        engines = self._reserve_engines()
        if self._door is not None:
            await self._door.start()
            stack.push_async_callback(self._door.close)
        if self._tariff is not None:
            await asyncio.to_thread(self._tariff.warm)
        host, port = await self.gateway.start(service.host, service.port, service.allow_hosts)
        stack.push_async_callback(self.gateway.close, 0.0)
        self._start_observer(host, port)
        admin = await self._start_dashboard()
        if engines is not None:
            await engines.start()
        pids = {} if engines is None else engines.pids()
        await self._start_prober()
        announce(
            Ready(
                url=f"http://{host}:{port}/v1",
                admin=admin,
                store=None if service.store is None else str(service.store),
                replicas=tuple(
                    ReadyReplica(id=one.id, url=one.url, pid=pids.get(one.id)) for one in self.fleet.health()
                ),
            )
        )

    def _open_recorder(self) -> Recorder | None:
        if self._service.store is None:
            return None
        store = self._stack.enter_context(Store(self._service.store))
        with Follower(store.path) as follower:
            self._begin = follower.end()
        self._stack.push_async_callback(self._stop_observer)
        recorder = Recorder(store, Recording().buffer_spans)
        self._stack.push_async_callback(asyncio.to_thread, recorder.close)
        return recorder

    def _start_observer(self, host: str, port: int) -> None:
        service = self._service
        if service.store is None:
            return
        export = service.export
        if export is not None and _is_at(export.url, host, port):
            _LOG.warning(
                "spans are not exported: the endpoint %s is this gateway itself",
                export.url,
                extra={"event": "export_off"},
            )
            export = None
        watch = Watch(
            store=str(service.store.absolute()),
            begin=self._begin,
            export=export,
            calls=service.log_calls,
            log_format=service.log,
            prices=service.prices,
        )
        self._observer = ObserverProcess(watch)
        self._observer.start()
        self.gateway.further_metrics = self._observer.page

    async def _stop_observer(self) -> None:
        """After the recorder, so that it sees the last spans too."""
        if self._observer is not None:
            await self._observer.stop()

    async def _start_dashboard(self) -> str | None:
        service = self._service
        if service.admin_port is None:
            return None
        store = None
        if service.store is not None:
            store = self._stack.enter_context(Store(service.store, readonly=True))
        dashboard = Dashboard(site(store, self.fleet))
        url = await dashboard.start(service.admin_port)
        self._stack.push_async_callback(dashboard.stop)
        return url

    def _reserve_engines(self) -> EmbeddedFleet | None:
        """The engines to start, and their replicas in the fleet: a call that comes early is told that they start."""
        embedded = self._service.embedded
        if embedded is None:
            return None
        engines = EmbeddedFleet(embedded.spec, embedded.count, self._engine_turned)
        self._stack.push_async_callback(engines.stop)
        for replica in engines.reserve():
            self.fleet.put(replica, healthy=False, reason="starting, its model is being loaded")
        noun = "replica" if embedded.count == 1 else "replicas"
        _LOG.info("starting %d %s of %s", embedded.count, noun, embedded.spec.weights.name)
        return engines

    def _engine_turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        """An engine's own supervisor has logged already why it went down."""
        self._logged = None if healthy else replica
        self.fleet.mark(replica, healthy, reason)
        self._logged = None

    def _turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        if healthy:
            _LOG.info("replica %s is up: %s", replica, reason, extra={"event": "replica_up", "replica": replica})
        elif replica != self._logged:
            _LOG.warning("replica %s is down: %s", replica, reason, extra={"event": "replica_down", "replica": replica})

    async def _start_prober(self) -> None:
        replicas = [load.replica for load in self.fleet.view().loads]
        undeclared = frozenset(replica.id for replica in replicas if not replica.models)
        discover = undeclared if len(replicas) > 1 else frozenset[ReplicaId]()
        fetch = self.gateway.upstream.fetch
        await Prober(self.fleet, fetch, discover=discover, failures=1).probe()
        prober = Prober(self.fleet, fetch, discover=discover)
        prober.start()
        self._stack.push_async_callback(prober.stop)


def _is_at(url: str, host: str, port: int) -> bool:
    """Whether a URL names the gateway: exported to itself, spans would come back for ever."""
    named = urlsplit(url)
    return named.port == port and (named.hostname in {host, "localhost"} or is_loopback(named.hostname or ""))
