"""What runs beside the data path, once however many workers there are: engines, prober, observer and dashboard."""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import urlsplit

from headway.app.dashboard.server import Dashboard
from headway.app.dashboard.site import site
from headway.app.service import Ready, ReadyReplica, Service
from headway.core.clock import SystemClock
from headway.core.errors import BadInputError
from headway.core.fleet import ReplicaId
from headway.gateway.access import Access
from headway.gateway.engines import EmbeddedFleet
from headway.gateway.fleet import LiveFleet
from headway.gateway.health import Fetch, Prober
from headway.gateway.hosts import is_loopback
from headway.gateway.observer.process import ObserverProcess
from headway.gateway.observer.watch import Watch
from headway.gateway.stores import open_registry
from headway.trace.follow import Follower
from headway.trace.store import Store

_LOG: Final = logging.getLogger(__name__)


class Beside:
    """The parts, each ended by ``stack``, last started first. Made before what records, so that it ends after it.

    Args:
        service: what is served.
        stack: ends what is started.
        changed: told of each change of the fleet.

    Raises:
        HeadwayError: there is nothing to serve from, or the store cannot be used.
    """

    def __init__(self, service: Service, stack: AsyncExitStack, changed: Callable[[], None] | None = None) -> None:
        if not service.upstreams and service.embedded is None:
            raise BadInputError(
                "There is no engine to serve from.",
                fix="Name one with --upstream URL (may be repeated), or start local ones with --embedded 2.",
            )
        self._service = service
        self._stack = stack
        self._logged: ReplicaId | None = None
        """Of this replica it is in the log already that it went down."""
        self.fleet = LiveFleet(service.upstreams, on_change=self._turned, on_update=changed)
        self._engines: EmbeddedFleet | None = None
        self._prober: Prober | None = None
        self._observer: ObserverProcess | None = None
        self._begin = 0
        """Where in the store the spans of this run begin."""
        if service.store is not None:
            with Store(service.store) as store, Follower(store.path) as follower:
                self._begin = follower.end()
            stack.push_async_callback(self._stop_observer)

    def reserve_engines(self) -> None:
        """Put the engines that are to be started into the fleet: a call that comes early is told that they start.

        Raises:
            HeadwayError: they cannot be started.
        """
        embedded = self._service.embedded
        if embedded is None:
            return
        engines = self._engines = EmbeddedFleet(embedded.spec, embedded.count, self._engine_turned)
        self._stack.push_async_callback(engines.stop)
        for replica in engines.reserve():
            self.fleet.put(replica, healthy=False, reason="starting, its model is being loaded")
        noun = "replica" if embedded.count == 1 else "replicas"
        _LOG.info("starting %d %s of %s", embedded.count, noun, embedded.spec.weights.name)

    async def start(self, host: str, port: int, fetch: Fetch) -> Ready:
        """Start everything; calls are let in already.

        Args:
            host: where the gateway listens.
            port: there.
            fetch: asks a replica how it is.

        Raises:
            HeadwayError: something could not be started.
        """
        self._start_observer(host, port)
        admin = await self._start_dashboard()
        if self._engines is not None:
            await self._engines.start()
        pids = {} if self._engines is None else self._engines.pids()
        await self._start_prober(fetch)
        return Ready(
            url=f"http://{host}:{port}/v1",
            admin=admin,
            store=None if self._service.store is None else str(self._service.store),
            replicas=tuple(ReadyReplica(id=one.id, url=one.url, pid=pids.get(one.id)) for one in self.fleet.health()),
        )

    async def add_replicas(self, service: Service) -> None:
        """Take in the replicas that ``service`` has beyond those that there are, and ask all how they are."""
        before = {replica.id: replica for replica in self._service.upstreams}
        states = {state.replica.id: state for state in self.fleet.states()}
        for replica in service.upstreams:
            state = states.get(replica.id)
            if state is None:
                self.fleet.put(replica, healthy=False, reason="not probed yet")
            elif before.get(replica.id) != replica:
                self.fleet.put(replica, healthy=state.healthy, reason=state.reason)
        if self._prober is not None:
            self._prober.discover = self._undeclared(service)
            await self._prober.probe()

    def remove_replicas(self, service: Service) -> None:
        """Send no more calls to those that ``service`` has not; what is under way there may end."""
        kept = {replica.id for replica in service.upstreams}
        for replica in self._service.upstreams:
            if replica.id not in kept:
                self.fleet.remove(replica.id)
        self._service = service

    def page(self) -> bytes:
        """What is seen from here, for the page of metrics."""
        return b"" if self._observer is None else self._observer.page()

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

    async def _stop_observer(self) -> None:
        """After what records, so that it sees the last spans too."""
        if self._observer is not None:
            await self._observer.stop()

    async def _start_dashboard(self) -> str | None:
        service = self._service
        if service.admin_port is None:
            return None
        store = None
        if service.store is not None:
            store = self._stack.enter_context(Store(service.store, readonly=True))
        dashboard = Dashboard(site(store, self.fleet, access=await self._open_access()))
        url = await dashboard.start(service.admin_port)
        self._stack.push_async_callback(dashboard.stop)
        return url

    async def _open_access(self) -> Access | None:
        """The dashboard's own, for workers have theirs in other processes."""
        if self._service.keeping is None:
            return None
        access = Access(open_registry(self._service.keeping.keys), SystemClock())
        self._stack.push_async_callback(access.close)
        await access.start()
        return access

    def _engine_turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        """An engine's own supervisor has logged already why it went down."""
        self._logged = None if healthy else replica
        self.fleet.mark(replica, healthy, reason)
        self._logged = None

    def _turned(self, replica: ReplicaId, healthy: bool, reason: str) -> None:
        if healthy:
            _LOG.info("replica %s is up: %s", replica, reason, extra={"event": "replica_up", "replica": replica})
        elif replica not in self.fleet:
            _LOG.info("replica %s was removed", replica, extra={"event": "replica_removed", "replica": replica})
        elif replica != self._logged:
            _LOG.warning("replica %s is down: %s", replica, reason, extra={"event": "replica_down", "replica": replica})

    async def _start_prober(self, fetch: Fetch) -> None:
        discover = self._undeclared(self._service)
        await Prober(self.fleet, fetch, discover=discover, failures=1).probe()
        prober = self._prober = Prober(self.fleet, fetch, discover=discover)
        prober.start()
        self._stack.push_async_callback(prober.stop)

    def _undeclared(self, service: Service) -> frozenset[ReplicaId]:
        """Replicas that have to be asked what they serve: one alone gets every name."""
        engines = 0 if service.embedded is None else service.embedded.count
        if len(service.upstreams) + engines == 1:
            return frozenset()
        return frozenset(replica.id for replica in service.upstreams if not replica.models)


def _is_at(url: str, host: str, port: int) -> bool:
    """Whether a URL names the gateway: exported to itself, spans would come back for ever."""
    named = urlsplit(url)
    return named.port == port and (named.hostname in {host, "localhost"} or is_loopback(named.hostname or ""))
