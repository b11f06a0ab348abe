"""All engines as one thing to send to: a pool of connections for each replica, and small requests beside the calls."""

import asyncio
from collections.abc import Container

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.core.errors import UpstreamError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.connection import Breakdown
from headway.gateway.deadlines import Deadlines
from headway.gateway.fleet import spoken_by
from headway.gateway.pool import Pool
from headway.gateway.responses import Headers
from headway.wire.dialects import CHAT


class Upstream:
    """Pools by replica, made when first needed."""

    def __init__(self, limits: Limits, clock: Clock, deadlines: Deadlines) -> None:
        self._limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._pools: dict[ReplicaId, Pool] = {}

    @property
    def open_connections(self) -> int:
        """Connections to all replicas, idle or busy."""
        return sum(pool.open_connections for pool in self._pools.values())

    def pool(self, replica: Replica) -> Pool:
        """The pool of ``replica``; a new one when the replica of this id is not the same any more.

        Raises:
            BadInputError: the replica's URL cannot be used.
        """
        pool = self._pools.get(replica.id)
        if pool is not None and (pool.replica is replica or pool.replica == replica):
            return pool
        if pool is not None:
            pool.close()
        pool = self._pools[replica.id] = Pool(replica, self._limits, self._clock, self._deadlines)
        return pool

    def keep(self, replicas: Container[ReplicaId]) -> None:
        """Let go of the connections to all others; what is busy ends when its exchange does."""
        for gone in [replica for replica in self._pools if replica not in replicas]:
            self._pools.pop(gone).close()

    async def fetch(
        self,
        replica: Replica,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout: float = 5.0,  # noqa: ASYNC109 - a bound on the whole, kept by asyncio.timeout below
        authorization: bytes | None = None,
        beside: bool = False,
    ) -> tuple[int, bytes]:
        """One small request on a connection of its own, so that what it says of the replica is true now.

        Args:
            replica: whom to ask.
            method: e.g. ``GET``.
            path: appended to the replica's URL, e.g. ``/models``.
            body: JSON, or nothing.
            timeout: seconds for connecting and the whole answer.
            authorization: sent where the replica has no key of its own.
            beside: ``path`` lies beside the replica's /v1 and not below it.

        Returns:
            Status and body.

        Raises:
            UpstreamError: no complete answer came in time.
        """
        pool = self.pool(replica)
        base = pool.base_path.removesuffix(b"/v1") if beside else pool.base_path
        lines = [b"%b %b%b HTTP/1.1\r\nhost: %b\r\n" % (method.encode(), base, path.encode(), pool.host)]
        lines += [b"%b: %b\r\n" % header for header in _keys(replica, authorization)]
        if body:
            lines.append(b"content-type: application/json\r\n")
        lines.append(b"connection: close\r\naccept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % len(body))
        try:
            async with asyncio.timeout(timeout):
                connection = await pool.connect()
                reply = _Reply(replica, self._limits.response_bytes)
                connection.send(b"".join(lines), body, reply)
                try:
                    return await reply.arrived
                finally:
                    if not reply.complete:
                        connection.abort()
        except TimeoutError:
            raise UpstreamError(
                f"Replica {replica.id!r} did not answer {method} {path} within {timeout:g} s.",
                fix="Check that it is not overloaded.",
            ) from None

    async def close(self) -> None:
        """Cut every connection."""
        for pool in self._pools.values():
            await pool.abort()


def _keys(replica: Replica, authorization: bytes | None) -> Headers:
    if replica.api_key is None:
        return [] if authorization is None else [(b"authorization", authorization)]
    spoken = next(iter(spoken_by(replica)), CHAT)
    return list(spoken.key_header(replica.api_key.encode()))


class _Reply:
    """The answer to a small request, collected."""

    def __init__(self, replica: Replica, max_bytes: int) -> None:
        self.arrived: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self.complete = False
        """The connection is free again, and perhaps another's already."""
        self._replica = replica
        self._max_bytes = max_bytes
        self._status = 0
        self._body = bytearray()

    def answer_head(self, status: int, headers: Headers, fields: dict[bytes, bytes]) -> None:
        del headers, fields
        self._status = status

    def answer_body(self, data: bytes, now: float) -> None:
        del now
        self._body += data
        if len(self._body) > self._max_bytes:
            self._fail(f"sent more than {self._max_bytes} bytes")

    def answer_end(self, now: float) -> None:
        del now
        self.complete = True
        if not self.arrived.done():
            self.arrived.set_result((self._status, bytes(self._body)))

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        del now
        self._fail(breakdown.detail)

    def met(self, error: Exception) -> None:
        del error
        self._fail("sent an answer that could not be taken")

    def _fail(self, detail: str) -> None:
        if not self.arrived.done():
            self.arrived.set_exception(UpstreamError(f"Replica {self._replica.id!r} {detail}."))
