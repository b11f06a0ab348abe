"""The gateway: what it answers, and its life from start to graceful close."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import structs

from headway.core.access import Action, Caller
from headway.core.clock import Clock
from headway.core.config import Limits, Recording
from headway.core.fleet import ReplicaId
from headway.gateway import openapi, own
from headway.gateway.admin import ROOT, Admin
from headway.gateway.bus import Bus
from headway.gateway.caches import figures as caches
from headway.gateway.caches.figures import Report
from headway.gateway.caches.station import ResponseCache
from headway.gateway.caches.steering import offer
from headway.gateway.call import Call
from headway.gateway.deadlines import Deadlines, beat_for
from headway.gateway.door import Visit
from headway.gateway.fleet import LiveFleet
from headway.gateway.front import Client, Front, Request
from headway.gateway.hosts import is_loopback
from headway.gateway.journal import Journal
from headway.gateway.later import Answer, Later
from headway.gateway.listening import cannot_listen
from headway.gateway.listing import Listing
from headway.gateway.metrics import Metrics
from headway.gateway.naming import Naming
from headway.gateway.own import Own, Wish
from headway.gateway.pinning import Pinning
from headway.gateway.priming import Priming
from headway.gateway.responses import TEXT, Failure, failure
from headway.gateway.server import ClientConnection
from headway.gateway.telemetry import Telemetry
from headway.gateway.tenant_figures import page_of
from headway.gateway.upstream import Upstream
from headway.gateway.wellness import wellness
from headway.gateway.whole import Whole
from headway.gateway.wiring import Passes, Wiring
from headway.policy.identify import Identifier
from headway.policy.models.catalog import Catalog
from headway.policy.route import RoutePolicy
from headway.trace.record import Recorder
from headway.wire.dialect import Dialect
from headway.wire.dialects import BY_PATH, CHAT

_CHAT: Final = b"/v1" + CHAT.path
_METHODS: Final = {
    **dict.fromkeys(BY_PATH, b"POST"),
    b"/v1/traces": b"POST",
    b"/v1/models": b"GET",
    b"/health": b"GET",
    b"/metrics": b"GET",
    openapi.PATH: b"GET",
}
_NEEDS: Final[dict[bytes, Action]] = {b"/v1/traces": "call", b"/v1/models": "read", b"/metrics": "read_all"}
"""What a key has to allow its holder for what is no call."""
_WHAT_IS_HERE: Final = "Use " + ", ".join(f"{method.decode()} {path.decode()}" for path, method in _METHODS.items())
_OK: Final = 200
_BACKLOG: Final = 4096
_SHOWN_BYTES: Final = 100
_FLUSH_SECONDS: Final = 0.5
"""How long clients may take to read why they were cut off, when the gateway stops."""
_SHUTDOWN: Final = failure("shutdown", 503, "The gateway is shutting down. Try again in a moment.")


class Gateway:
    """An endpoint for clients of OpenAI's and Anthropic's APIs, in front of a fleet.

    Args:
        fleet: the engines.
        policy: chooses one for each call.
        identifier: tells which task a call belongs to; ``None``: each is its own.
        recorder: takes the spans; ``None``: none are kept. Without both, answers are relayed unseen.
        limits: bounds on everything that a client or an engine could make grow.
        recording: whether text is kept.
        clock: for every time and every deadline.
        passes: what calls pass before they are sent; ``None``: nothing.
    """

    def __init__(
        self,
        fleet: LiveFleet,
        *,
        policy: RoutePolicy,
        identifier: Identifier | None,
        recorder: Recorder | None,
        limits: Limits,
        recording: Recording,
        clock: Clock,
        passes: Passes | None = None,
    ) -> None:
        self.fleet = fleet
        self.bus = Bus()
        self.metrics = Metrics()
        self.further_metrics: Callable[[], bytes] = bytes
        """What others who watch the gateway add to the page of metrics."""
        self.whole: Whole | None = None
        """Where this is one of several workers: all of them."""
        self._clock = clock
        self._deadlines = Deadlines(clock, beat_for(limits))
        self.upstream = Upstream(limits, clock, self._deadlines)
        passes = passes or Passes()
        if passes.naming is None:
            passes = structs.replace(passes, naming=Naming(Catalog()))
        kept = recorder if recording.enabled else None
        self.journal = Journal(identifier, kept, self.metrics, recording, clock)
        self._front = Front(self, limits, clock, self._deadlines)
        self.telemetry = Telemetry(kept, limits, self._front.unforeseen)
        self._wiring = Wiring(
            fleet=fleet,
            policy=policy,
            upstream=self.upstream,
            journal=self.journal,
            limits=limits,
            clock=clock,
            unforeseen=self._front.unforeseen,
            passes=passes,
            cache=None if passes.cache is None else passes.cache(clock, self._deadlines, self._front.unforeseen),
            heeded=passes.heeded,
        )
        self._door = passes.door
        self.admin = Admin(None if self._door is None else self._door.access, self._front.unforeseen)
        self.own = Own(None if self._door is None else self._door.access, self._front.unforeseen)
        self._join(passes)
        self._pinning = self._pins(passes)
        self.cache = self._wiring.cache
        """Answers that are kept; ``None``: none are."""
        if self.cache is not None:
            offer(self.cache, self.admin, partial(self._caches, self.cache), self._dropped_elsewhere)
        self._server: asyncio.Server | None = None

    def _join(self, passes: Passes) -> None:
        """Have parts that were made apart know of each other."""
        self.own.offer("metrics", self._own_metrics)
        if passes.leading is not None:
            passes.leading.priming = Priming(self.upstream.fetch)
        if passes.turns is not None:
            passes.turns.breakers = passes.breakers
            passes.turns.whereabouts = passes.whereabouts
        if passes.siblings is not None:
            passes.siblings.join(self.journal)

    def _pins(self, passes: Passes) -> Pinning:
        """What a person may say while the gateway serves, and see of breakers."""
        pinning = Pinning(self.fleet, self.bus, self._clock)
        pinning.offer(self.admin)
        if passes.naming is not None:
            passes.naming.pins = pinning.pins
        if passes.breakers is not None:
            self.admin.on_show("/admin/breakers", passes.breakers.shown(self._clock))
        return pinning

    @property
    def open_connections(self) -> int:
        """Clients connected now."""
        return len(self._front.connections)

    @property
    def buffered_bytes(self) -> int:
        """What is written to clients and not yet taken by them."""
        return sum(connection.buffered_bytes for connection in self._front.connections)

    # --- life

    async def start(
        self, host: str, port: int, names: tuple[str, ...] = (), *, shared: bool = False
    ) -> tuple[str, int]:
        """Listen.

        Args:
            host: on loopback, callers have to name this machine by an address, by a name that is no public one, or by
                this one; on any other address they may call it what they like.
            port: 0 is a free one.
            names: further names for a gateway on loopback, e.g. that of a proxy in front of it.
            shared: other workers listen there too.

        Returns:
            The address in use.

        Raises:
            BadInputError: the address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: ClientConnection(self._front), host, port, backlog=_BACKLOG, reuse_port=shared
            )
        except (OSError, UnicodeError) as error:
            raise cannot_listen(host, port, error) from error
        self._deadlines.start()
        self._pinning.ask()
        passes = self._wiring.passes
        if passes.whereabouts is not None and passes.turns is not None:
            passes.whereabouts.open(self.bus, passes.turns.learn)
        if self.cache is not None:
            self.cache.start()
        name = self._server.sockets[0].getsockname()
        if is_loopback(name[0]):
            self._front.names = frozenset(known.lower() for known in (host, *names))
        return name[0], name[1]

    async def close(self, drain: float) -> None:
        """Stop: accept no more, let what is under way end within ``drain`` seconds, then end it with an error."""
        front = self._front
        front.draining = True
        if self._server is not None:
            self._server.close()
        for connection in list(front.connections):
            connection.drain()
        if not await front.emptied(drain):
            for connection in list(front.connections):
                connection.cancel(_SHUTDOWN)
            if not await front.emptied(_FLUSH_SECONDS):
                for connection in list(front.connections):
                    connection.abort()
                await front.emptied(None)
        if self.cache is not None:
            await self.cache.close()
        if self._wiring.passes.siblings is not None:
            await self._wiring.passes.siblings.close()
        if self._wiring.passes.turns is not None:
            self._wiring.passes.turns.close()
        if self._wiring.passes.whereabouts is not None:
            await self._wiring.passes.whereabouts.close()
        await self.telemetry.close()
        await self.upstream.close()
        self._deadlines.stop()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    def rewire(self, policy: RoutePolicy, naming: Naming | None) -> None:
        """Have calls from now on meet these; those under way go on as they began."""
        naming = naming or Naming(Catalog())
        naming.pins = self._pinning.pins
        passes = structs.replace(self._wiring.passes, naming=naming)
        self._wiring = structs.replace(self._wiring, policy=policy, passes=passes)

    # --- what is answered

    def handle(self, request: Request, client: Client) -> None:
        """Answer one request."""
        if request.path == _CHAT and request.method == b"POST":
            self._call(request, client, CHAT)
            return
        path = request.path.partition(b"?")[0]
        allowed = _METHODS.get(path)
        if path.startswith(ROOT):
            self._administer(request, client)
        elif path.startswith(own.ROOT):
            caller = self._entered(request, client)
            if not isinstance(caller, Failure):
                self.own.handle(request, client, caller)
        elif allowed is None:
            client.fail(failure("not_found", 404, f"There is no {_shown(path)} here. {_WHAT_IS_HERE}."))
        elif request.method != allowed and not (allowed == b"GET" and request.method == b"HEAD"):
            message = f"{_shown(path)} answers {allowed.decode()} and not {_shown(request.method)}."
            client.fail(failure("method_not_allowed", 405, message, (b"allow", allowed)))
        elif path in BY_PATH:
            self._call(request, client, BY_PATH[path])
        elif path == b"/health":
            self._health(client)
        elif path == openapi.PATH:
            client.respond(_OK, openapi.document())
        else:
            self._beside(path, request, client)

    def _call(self, request: Request, client: Client, dialect: Dialect) -> None:
        visit = None
        if self._door is not None:
            caller = self._entered(request, client)
            if isinstance(caller, Failure):
                return
            visit = None if caller is None else Visit(self._door, caller)
        Call(self._wiring, request, client, dialect, visit).start()

    def _entered(self, request: Request, client: Client) -> Caller | Failure | None:
        """Who is calling; ``None`` where nobody is asked for a key. Who may not come in was told, and is counted."""
        if self._door is None:
            return None
        caller = self._door.enter(request, client.address)
        if isinstance(caller, Failure):
            self.metrics.turned_away(caller.error)
            client.fail(caller)
        return caller

    def _administer(self, request: Request, client: Client) -> None:
        caller = self._entered(request, client)
        if not isinstance(caller, Failure):
            self.admin.handle(request, client, caller)

    def _beside(self, path: bytes, request: Request, client: Client) -> None:
        """What is no call and no tenant's neighbour may see."""
        caller = self._entered(request, client)
        if isinstance(caller, Failure):
            return
        if self._door is not None and caller is not None:
            problem = self._door.access.forbidden(caller, _NEEDS[path])
            if problem is not None:
                client.fail(problem)
                return
        naming = self._wiring.passes.naming
        names = () if naming is None else naming.names
        if path == b"/v1/traces":
            self.telemetry.take(request, client, "" if caller is None else caller.tenant.id)
        elif path == b"/v1/models":
            Listing(self.fleet, self.upstream, self._front.unforeseen, request, client, caller, names).start()
        elif self.whole is None:
            client.respond(_OK, self.metrics_page() + self.further_metrics(), TEXT)
        else:
            Later(client, self._whole_page(self.whole), self._front.unforeseen)

    async def _own_metrics(self, wish: Wish) -> Answer:
        page = self.metrics_page() if self.whole is None else await self.whole.metrics()
        return Answer(_OK, page_of(wish.caller.tenant.id, page), TEXT)

    async def _whole_page(self, whole: Whole) -> Answer:
        return Answer(_OK, await whole.metrics(), TEXT)

    def refused(self, request: Request, problem: Failure) -> None:
        """A request was turned away before it was complete: a call that failed, if it was to be one.

        Where callers need keys, of one without a key that is known it is counted that it came, and no more is kept:
        else anybody could fill the store.
        """
        dialect, tenant = BY_PATH.get(request.path.partition(b"?")[0]), ""
        if self._door is not None:
            caller = self._door.access.known(request.fields)
            if caller is None:
                self.metrics.turned_away(problem.error)
                return
            tenant = caller.tenant.id
        if dialect is not None:
            record = self.journal.open(request.received, dialect)
            record.tenant, record.error = tenant, problem.error
            self.journal.close(record)

    def _health(self, client: Client) -> None:
        if self.whole is None or self._door is not None:
            answer = self._wellness(None)
            client.respond(answer.status, answer.body)
        else:
            Later(client, self._whole_health(self.whole), self._front.unforeseen)

    async def _caches(self, cache: ResponseCache) -> Sequence[Report]:
        told = () if self.whole is None else await self.whole.caches()
        return told or (cache.report(),)

    async def _dropped_elsewhere(self, message: bytes) -> Sequence[int]:
        return () if self.whole is None else await self.whole.dropped(message)

    async def _whole_health(self, whole: Whole) -> Answer:
        return self._wellness(await whole.in_flight())

    def _wellness(self, in_flight: Mapping[ReplicaId, int] | None) -> Answer:
        return wellness(self.fleet, self._wiring.passes, in_flight, self._clock.now())

    def metrics_page(self) -> bytes:
        """What this process has counted."""
        journal = self.journal
        page = self.metrics.render(
            self.fleet.view(),
            spans_recorded=journal.spans_recorded,
            spans_dropped=journal.spans_dropped,
            spans_lost=journal.spans_lost,
        )
        passes = self._wiring.passes
        escalations = None if passes.naming is None else passes.naming.escalations
        told = (
            journal,
            self.telemetry,
            passes.siblings,
            passes.whereabouts,
            passes.retries,
            passes.breakers,
            passes.hedging,
            passes.leading,
            escalations,
        )
        parts = [part for part in told if part is not None]
        return (
            page
            + "".join([f"{line}\n" for part in parts for line in part.families()]).encode(errors="replace")
            + (b"" if passes.turns is None else passes.turns.metrics())
            + (b"" if self.cache is None else caches.page(self.cache.report()))
        )


def _shown(text: bytes) -> str:
    """What a client sent, fit to be sent back."""
    return text[:_SHOWN_BYTES].decode("ascii", "replace")
