"""The prober: asks every replica, again and again, whether it can answer."""

import asyncio
import contextlib
import logging
from typing import Protocol

import msgspec
from msgspec import Struct

from headway.core.errors import HeadwayError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.fleet import LiveFleet

PERIOD = 2.0
"""Seconds between the end of one round of probes and the next."""
FAILURES = 3
"""Failed probes in a row that make a replica unhealthy; one that succeeds makes it healthy again."""
TIMEOUT = 2.0
"""Seconds that a probe may take."""

_LOG = logging.getLogger(__name__)
_OK = 200
_SERVER_ERROR = 500


class _Model(Struct):
    id: str


class _Models(Struct):
    data: list[_Model]


class Fetch(Protocol):
    """One small request to a replica; ``path`` is appended to the replica's URL.

    Raises:
        HeadwayError: it could not be answered.
    """

    async def __call__(
        self,
        replica: Replica,
        method: str,
        path: str,
        /,
        *,
        timeout: float,  # noqa: ASYNC109 - kept by whoever fetches
    ) -> tuple[int, bytes]:
        """Status and body of the answer, within ``timeout`` seconds."""
        ...


class Prober:
    """Probes all replicas of a fleet side by side, round after round, from `start` to `stop`.

    llama.cpp is asked for ``/health`` and has to say 200 (it says 503 while it loads its model). Of anything else
    ``/models`` is asked, and any answer below 500 will do: a provider that turns a probe away without a key is there.

    Args:
        fleet: whose replicas to probe, and to tell.
        fetch: how to ask.
        discover: replicas whose models are what their ``/models`` lists, because nobody declared them.
        period: seconds between rounds.
        failures: failed probes in a row that make a replica unhealthy.
    """

    def __init__(
        self,
        fleet: LiveFleet,
        fetch: Fetch,
        *,
        discover: frozenset[ReplicaId] = frozenset(),
        period: float = PERIOD,
        failures: int = FAILURES,
    ) -> None:
        self._fleet = fleet
        self._fetch = fetch
        self.discover = discover
        self._period = period
        self._threshold = failures
        self._failed: dict[ReplicaId, int] = {}
        self._rounds: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the rounds, the first one now."""
        self._rounds = asyncio.create_task(self._run(), name="headway health prober")
        self._rounds.add_done_callback(_tell_if_broken)

    async def stop(self) -> None:
        """End the rounds, and the probes under way; raises what broke them, if anything did."""
        rounds, self._rounds = self._rounds, None
        if rounds is not None:
            rounds.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await rounds

    async def probe(self) -> None:
        """One round: every replica once."""
        replicas = [load.replica for load in self._fleet.view().loads]
        self._failed = {replica.id: self._failed.get(replica.id, 0) for replica in replicas}
        async with asyncio.TaskGroup() as group:
            for replica in replicas:
                group.create_task(self._probe(replica))

    async def _run(self) -> None:
        while True:
            await self.probe()
            await asyncio.sleep(self._period)

    async def _probe(self, replica: Replica) -> None:
        llama = replica.engine == "llama.cpp"
        path = "/health" if llama else "/models"
        try:
            status, body = await self._fetch(replica, "GET", path, timeout=TIMEOUT)
        except HeadwayError as error:
            self._failure(replica, error.what)
            return
        if status == _OK or (not llama and status < _SERVER_ERROR):
            self._failed[replica.id] = 0
            if replica.id in self.discover and status == _OK:
                self._learn(replica, body)
            self._fleet.mark(replica.id, healthy=True, reason=f"GET {path} answered {status}")
        else:
            self._failure(replica, f"GET {path} answered {status}")

    def _failure(self, replica: Replica, reason: str) -> None:
        count = self._failed[replica.id] = self._failed.get(replica.id, 0) + 1
        if count >= self._threshold:
            self._fleet.mark(replica.id, healthy=False, reason=reason)

    def _learn(self, replica: Replica, body: bytes) -> None:
        try:
            listed = msgspec.json.decode(body, type=_Models)
        except msgspec.MsgspecError:
            return  # some gateways list nothing, or in a shape of their own: any name is passed through, as before
        names = tuple(model.id for model in listed.data)
        if names != replica.models:
            self._fleet.declare(replica.id, names)


def _tell_if_broken(rounds: asyncio.Task[None]) -> None:
    """A fault of our own must not leave the fleet unwatched without a word."""
    if not rounds.cancelled() and (error := rounds.exception()) is not None:
        _LOG.error("replicas are no longer probed", exc_info=error)
