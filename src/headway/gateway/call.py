"""One chat completion on its way: request in, replica chosen, answer relayed as it comes, account given at the end."""

import asyncio
from typing import Final, cast

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.core.errors import BadInputError, HeadwayError, UpstreamError
from headway.core.fleet import ReplicaId
from headway.core.span import ErrorType
from headway.gateway.connection import Breakdown, UpstreamConnection
from headway.gateway.fleet import LiveFleet
from headway.gateway.forward import request_head
from headway.gateway.front import Client, Request
from headway.gateway.journal import Journal
from headway.gateway.pool import Pool
from headway.gateway.relay import BrokenAnswerError, Relay, relay_for
from headway.gateway.responses import Failure, Headers, connection_bound, failure
from headway.gateway.upstream import Upstream
from headway.policy.route import RouteDecision, RouteDone, RoutePolicy, RouteRequest, RouteSent
from headway.wire.openai import ChatRequest, decode_request

_IDLE_RACE_SECONDS: Final = 0.25
"""A kept-alive connection that ends this soon after a request was written to it, without one byte of an answer, had
been closed by the replica before it read the request: an engine at work on it would not have hung up yet."""


class Wiring:
    """What all calls of one gateway share."""

    __slots__ = ("clock", "fleet", "journal", "limits", "policy", "upstream")

    def __init__(
        self,
        *,
        fleet: LiveFleet,
        policy: RoutePolicy,
        upstream: Upstream,
        journal: Journal,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self.fleet = fleet
        self.policy = policy
        self.upstream = upstream
        self.journal = journal
        self.limits = limits
        self.clock = clock


class Call:
    """A call from the request to the last byte of its answer. It ends exactly once, however it ends."""

    # Defaults on the class: most calls change few of them, and every microsecond is every caller's.
    _chat: ChatRequest
    _replica: ReplicaId
    _pool: Pool
    _excluded: frozenset[ReplicaId] = frozenset()
    _unreachable: HeadwayError | None = None
    """Why the replica that was tried last could not be reached."""
    _held = False
    """The fleet counts this call as in flight on ``_replica``."""
    _connecting: asyncio.Task[None] | None = None
    _connection: UpstreamConnection | None = None
    _retried = False
    _relay: Relay
    _answered = False
    """The head of an answer has come, so there is a relay."""

    def __init__(self, wiring: Wiring, request: Request, client: Client) -> None:
        self._wiring = wiring
        self._request = request
        self._client = client
        self.record = wiring.journal.open(request.received)

    def start(self) -> None:
        """Read the request and send it on."""
        request = self._request
        self._client.watch(self)
        try:
            chat = self._chat = decode_request(request.body)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return
        self._wiring.journal.identify(self.record, chat, request.fields, request.received)
        self._route(request.received)

    # --- sending

    def _route(self, now: float) -> None:
        wiring, record = self._wiring, self.record
        request = RouteRequest(model=record.model, task=record.task, excluded=self._excluded)
        decision = wiring.policy.decide(request, wiring.fleet.view(), now)
        record.receipt = decision.receipt
        replica = decision.replica
        if replica is None:
            self._fail(self._no_replica(decision))
            return
        self._replica = record.replica = replica.id
        wiring.fleet.started(replica.id)
        self._held = True
        try:
            pool = self._pool = wiring.upstream.pool(replica)
        except BadInputError as error:
            self._pass_over(error)
            return
        record.provider = pool.provider
        connection = pool.take()
        if connection is None:
            self._connect()
        else:
            self._send(connection)

    def _connect(self) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connected())

    async def _connected(self) -> None:
        try:
            connection = await self._pool.connect()
        except UpstreamError as error:
            self._connecting = None
            self._pass_over(error)
        else:
            self._connecting = None
            self._send(connection)

    def _pass_over(self, error: HeadwayError) -> None:
        """The replica that was chosen cannot be sent anything: choose another."""
        wiring = self._wiring
        wiring.fleet.mark(self._replica, False, str(error))  # noqa: FBT003 - the fleet's signature
        self._unreachable = error
        self._excluded |= {self._replica}
        self._release(failed=True)
        self._route(wiring.clock.now())

    def _send(self, connection: UpstreamConnection) -> None:
        wiring, record, request = self._wiring, self.record, self._request
        self._connection = connection
        record.attempts += 1
        connection.send(request_head(request, self._pool, record), request.body, self)
        record.sent = connection.sent_at
        wiring.policy.observe(RouteSent(replica=self._replica, task=record.task))

    # --- what the engine's side tells

    def answer_head(self, status: int, headers: Headers, fields: dict[bytes, bytes]) -> None:
        """The answer begins."""
        dropped = connection_bound(fields)
        passed = [header for header in headers if header[0] not in dropped]
        passed.append(self._pool.shown_as)
        if self.record.task:
            passed.append((b"x-headway-task", self.record.task.encode("latin-1", "replace")))
        wiring = self._wiring
        self._answered = True
        self._relay = relay_for(
            self._client,
            status,
            passed,
            fields,
            limit=wiring.limits.response_bytes,
            observed=wiring.journal.active,
        )

    def answer_body(self, data: bytes, now: float) -> None:
        """A piece of the answer."""
        try:
            self._relay.body(data, now)
        except BrokenAnswerError as error:
            self._cut(failure(error.error, 502, error))

    def answer_end(self, now: float) -> None:
        """The answer is complete."""
        self._connection = None
        try:
            self._relay.end(now)
        except BrokenAnswerError as error:
            self._fail(failure(error.error, 502, error))
        else:
            self._end()

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        """The exchange broke off; if the replica cannot have read the request, it is sent once more."""
        connection = cast("UpstreamConnection", self._connection)
        self._connection = None
        raced = connection.reused and now - connection.sent_at < _IDLE_RACE_SECONDS
        if breakdown.error == "upstream_closed" and breakdown.silent and raced and not self._retried:
            self._retried = True
            self._connect()
            return
        status = 504 if breakdown.error in {"upstream_timeout", "upstream_stalled"} else 502
        message = f"Replica {self._replica!r} {breakdown.detail}. Try again; if it persists, look at its log."
        self._fail(failure(breakdown.error, status, message))

    # --- what the client's side tells

    def client_gone(self, error: str) -> None:
        """Nobody waits for the answer any more: the engine is told at once by cutting the connection."""
        if not (self._answered and self._relay.said_all):
            self.record.error = ErrorType(error)
        self._detach()
        self._end()

    def client_blocked(self) -> None:
        """The client cannot keep up, so the engine's answer is read no further."""
        if self._connection is not None:
            self._connection.pause()

    def client_ready(self) -> None:
        """The client has caught up."""
        if self._connection is not None:
            self._connection.resume()

    def cancel(self, problem: Failure) -> None:
        """End now, with ``problem`` as the answer."""
        self._cut(problem)

    # --- ending

    def _cut(self, problem: Failure) -> None:
        self._detach()
        self._fail(problem)

    def _detach(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._connection is not None:
            self._connection.abort()
            self._connection = None

    def _fail(self, problem: Failure) -> None:
        self.record.error = problem.error
        if self._answered:
            self._relay.fail(problem)
        else:
            self._client.fail(problem)
        self._end()

    def _end(self) -> None:
        wiring, record = self._wiring, self.record
        if self._answered:
            self._relay.note(record)
        self._release(failed=record.error is not None)
        wiring.journal.close(record)

    def _release(self, *, failed: bool) -> None:
        if self._held:
            self._held = False
            replica = self._replica
            self._wiring.fleet.finished(replica)
            self._wiring.policy.observe(RouteDone(replica=replica, task=self.record.task, failed=failed))

    def _no_replica(self, decision: RouteDecision) -> Failure:
        reason = f"{decision.receipt.reason[:1].upper()}{decision.receipt.reason[1:]}"
        if decision.refusal == "unknown_model":
            names = ", ".join(self._wiring.fleet.models())
            return failure("unknown_model", 404, f"{reason}. Use one of: {names}.")
        if self._unreachable is not None:
            return failure("upstream_connect", 502, self._unreachable)
        return failure("no_replica", 503, f"{reason}. See /health for the state of the replicas.")
