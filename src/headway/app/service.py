"""What `headway serve` serves, as it was asked for; and the front of it: the gateway with what its calls pass."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec import Struct

from headway.app.meaning import opening_of
from headway.app.own import offer
from headway.core.clock import SystemClock
from headway.core.config import Limits, Recording
from headway.core.fleet import Replica, ReplicaId
from headway.core.log_lines import LogFormat
from headway.core.money import Price
from headway.gateway.app import Gateway
from headway.gateway.breakers import BreakerRules, Breakers
from headway.gateway.caches.opening import Caching
from headway.gateway.door_opening import Keeping, OwnModels, open_door
from headway.gateway.engines import EngineSpec
from headway.gateway.fleet import LiveFleet
from headway.gateway.hedging import HedgeRules, Hedging
from headway.gateway.leading import Leading, LeadRules
from headway.gateway.naming import Naming
from headway.gateway.observer.endpoint import Endpoint
from headway.gateway.policies import DEFAULT, load
from headway.gateway.retrying import Retrying
from headway.gateway.scheduling import Scheduling, open_turns, wants_all
from headway.gateway.siblings import PATIENCE_SECONDS, Siblings
from headway.gateway.tariff import Tariff
from headway.gateway.whereabouts import Whereabouts
from headway.gateway.whereabouts_redis import RedisChannel
from headway.gateway.wiring import Passes
from headway.policy.cache.rules import CacheRules
from headway.policy.identify import Identifier
from headway.policy.models.catalog import Catalog
from headway.policy.resend.retry import RetryRules
from headway.trace.ids import Ids
from headway.trace.prices import with_own
from headway.trace.record import Recorder
from headway.trace.store import Store

DRAIN_SECONDS: Final = 30.0
"""What calls under way may take to end after the first signal."""


class Embedded(Struct, frozen=True, kw_only=True):
    """Local engines to start."""

    spec: EngineSpec
    count: int


class SharedTasks(Struct, frozen=True, kw_only=True):
    """How workers know of each other's tasks."""

    redis: str | None = None
    """URL; ``None``: through the process that looks after them, on this machine."""
    ttl: float = 3600.0
    """Seconds that a call is remembered in Redis."""
    patience: float = PATIENCE_SECONDS
    """Seconds that a call waits at most to learn of others."""


class Service(Struct, frozen=True, kw_only=True):
    """What to serve, and how."""

    upstreams: tuple[Replica, ...] = ()
    embedded: Embedded | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    """Processes that serve calls; with several, one more looks after them."""
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
    tasks: SharedTasks = SharedTasks()
    caching: Caching | None = None
    """Which answers are kept to be given again; ``None``: none are."""
    retries: RetryRules | None = None
    """How often calls are sent again; ``None``: never to the same model."""
    breakers: BreakerRules | None = None
    """When a replica is left alone; ``None``: never."""
    fanout: LeadRules | None = None
    """Which calls wait for another that begins alike; ``None``: none."""
    hedging: HedgeRules | None = None
    """Which calls are sent to a second replica; ``None``: none."""
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


class Front:
    """The gateway of one process, with what its calls pass; each part is ended by ``stack``, last started first."""

    def __init__(
        self, service: Service, fleet: LiveFleet, stack: AsyncExitStack, siblings: Siblings | None = None
    ) -> None:
        self._service = service
        self._stack = stack
        self._policy = load(service.policy)
        self._shown: Store | None = None
        """Where tenants' tasks are read."""
        self._naming = None if service.catalog is None else Naming(service.catalog)
        recorder = self._open_recorder()
        clock = SystemClock()
        self._door = None if service.keeping is None else open_door(service.keeping, fleet, service.prices, clock)
        self._tariff = Tariff(service.prices, OwnModels(fleet)) if service.caching is not None else None
        scheduling = service.scheduling
        tried = None if scheduling is None or scheduling.shadow is None else load(scheduling.shadow)
        measure = scheduling is not None or wants_all(self._policy) or service.fanout is not None
        identifier = Identifier(new_id=Ids(clock).task, measure=measure, shared=siblings is not None)
        turns = open_turns(scheduling, self._policy, fleet, identifier, clock, tried=tried)
        self.gateway = Gateway(
            fleet,
            policy=self._policy,
            identifier=identifier,
            recorder=recorder,
            limits=service.limits,
            recording=Recording(enabled=recorder is not None, keep_text=service.keep_text),
            clock=clock,
            passes=Passes(
                door=self._door,
                naming=self._naming,
                siblings=siblings,
                cache=opening_of(service.caching),
                tariff=self._tariff,
                turns=turns,
                whereabouts=None if siblings is None or turns is None else _whereabouts(service.tasks, fleet, clock),
                batch=frozenset() if scheduling is None else scheduling.batch,
                retries=None if service.retries is None else Retrying(service.retries),
                breakers=None if service.breakers is None else Breakers(service.breakers),
                leading=None if service.fanout is None else Leading(service.fanout, identifier.prompt, clock),
                hedging=None if service.hedging is None else Hedging(service.hedging),
            ),
        )

    async def start(self, port: int, *, shared: bool = False) -> tuple[str, int]:
        """Let calls in, the port last: whoever comes is served.

        Args:
            port: 0 is a free one.
            shared: other processes listen there too.

        Returns:
            The address in use.

        Raises:
            HeadwayError: something could not be started.
        """
        service, stack = self._service, self._stack
        if self._door is not None:
            await self._door.start()
            stack.push_async_callback(self._door.close)
        if self._door is not None and service.store is not None:
            self._shown = stack.enter_context(Store(service.store, readonly=True))
        self._offer_own()
        if self._tariff is not None:
            await asyncio.to_thread(self._tariff.warm)
        host, port = await self.gateway.start(service.host, port, service.allow_hosts, shared=shared)
        stack.push_async_callback(self.gateway.close, 0.0)
        return host, port

    async def change(self, service: Service) -> None:
        """Serve this from the next call on; those under way go on as they began.

        Args:
            service: differs from what is served only in what `headway.app.changes` takes for possible.

        Raises:
            HeadwayError: a policy or rule cannot be used; nothing has changed.
        """
        old, catalog, caching, cache = self._service, service.catalog, service.caching, self.gateway.cache
        policy = self._policy if service.policy == old.policy else load(service.policy)
        rules = None if caching is None or caching == old.caching else CacheRules(caching.rules)
        self._service, self._policy = service, policy
        if catalog is None or self._naming is None:
            self._naming = None if catalog is None else Naming(catalog)
        else:
            self._naming.adopt(catalog)
        self.gateway.rewire(policy, self._naming)
        if cache is not None and rules is not None:
            cache.adopt(rules)
        for tariff in (self._tariff, None if self._door is None else self._door.tariff):
            if tariff is not None:
                tariff.adopt(service.prices)
        self._offer_own()
        if self._door is not None:
            await self._door.access.refreshed()

    def _offer_own(self) -> None:
        if self._door is not None:
            offer(self.gateway.own, self._door, self._shown, with_own(self._service.prices))

    def _open_recorder(self) -> Recorder | None:
        if self._service.store is None:
            return None
        store = self._stack.enter_context(Store(self._service.store))
        recorder = Recorder(store, Recording().buffer_spans)
        self._stack.push_async_callback(asyncio.to_thread, recorder.close)
        return recorder


def _whereabouts(tasks: SharedTasks, fleet: LiveFleet, clock: SystemClock) -> Whereabouts:
    """Where calls are sent is told by the same means as tasks are."""
    channel = None if tasks.redis is None else RedisChannel(tasks.redis)
    return Whereabouts(uuid4().hex, fleet, clock, channel)
