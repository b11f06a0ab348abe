"""One chat completion on its way: request in, replica chosen, answer relayed as it comes, account given at the end."""

import asyncio
from typing import Final, cast

from headway.core.clock import Clock
from headway.core.config import Limits
from headway.core.errors import BadInputError, UpstreamError
from headway.core.fleet import Replica, ReplicaId
from headway.core.span import ErrorType
from headway.gateway.connection import Breakdown, UpstreamConnection
from headway.gateway.fleet import LiveFleet
from headway.gateway.front import Client, Request
from headway.gateway.journal import Journal
from headway.gateway.relay import BrokenAnswerError, Relay, relay_for
from headway.gateway.responses import HOP_BY_HOP, Failure, Headers, end_to_end, failure
from headway.gateway.upstream import Upstream
from headway.policy.route import RouteDecision, RouteDone, RoutePolicy, RouteRequest, RouteSent
from headway.wire.openai import ChatRequest, decode_request

_IDLE_RACE_SECONDS: Final = 0.25
"""A kept-alive connection that ends this soon after a request was written to it, without one byte of an answer, had
been closed by the replica before it read the request: an engine at work on it would not have hung up yet."""
_NOT_SENT: Final = HOP_BY_HOP | {b"host", b"expect", b"accept-encoding", b"traceparent"}
_NOT_SENT_WITH_KEY: Final = _NOT_SENT | {b"authorization"}
_TRACE_ID: Final = 32
_HEX: Final = frozenset("0123456789abcdef")


class Wiring:
    """What all calls of one gateway share."""

    __slots__ = ("calls", "clock", "fleet", "journal", "limits", "policy", "upstream")

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
        self.calls: set[Call] = set()
        """Under way now."""


class Call:
    """A call from the request to the last byte of its answer. It ends exactly once, however it ends."""

    __slots__ = (
        "_chat",
        "_client",
        "_connecting",
        "_connection",
        "_excluded",
        "_held",
        "_relay",
        "_replica",
        "_request",
        "_retried",
        "_unreachable",
        "_wiring",
        "record",
    )

    def __init__(self, wiring: Wiring, request: Request, client: Client) -> None:
        self._wiring = wiring
        self._request = request
        self._client = client
        self.record = wiring.journal.open(request.received)
        self._chat: ChatRequest
        self._replica: Replica
        self._excluded: frozenset[ReplicaId] = frozenset()
        self._unreachable: UpstreamError | None = None
        """Why the replica that was tried last could not be reached."""
        self._held = False
        """The fleet counts this call as in flight on ``_replica``."""
        self._connecting: asyncio.Task[None] | None = None
        self._connection: UpstreamConnection | None = None
        self._retried = False
        self._relay: Relay | None = None

    def start(self) -> None:
        """Read the request and send it on."""
        wiring = self._wiring
        wiring.calls.add(self)
        self._client.watch(self)
        try:
            self._chat = decode_request(self._request.body)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return
        wiring.journal.identify(self.record, self._chat, self._request.fields, self._request.received)
        self._route()

    # --- sending

    def _route(self) -> None:
        wiring = self._wiring
        now = wiring.clock.now()
        request = RouteRequest(model=self._chat.model, task=self.record.task, excluded=self._excluded)
        decision = wiring.policy.decide(request, wiring.fleet.view(), now)
        self.record.receipt = decision.receipt
        if decision.replica is None:
            self._fail(self._no_replica(decision))
            return
        replica = self._replica = decision.replica
        self.record.replica = replica.id
        self.record.provider = replica.engine if replica.engine != "openai" else None
        wiring.fleet.started(replica.id)
        self._held = True
        connection = wiring.upstream.pool(replica).take()
        if connection is None:
            self._connect()
        else:
            self._send(connection)

    def _connect(self) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connected())

    async def _connected(self) -> None:
        replica = self._replica
        try:
            connection = await self._wiring.upstream.pool(replica).connect()
        except UpstreamError as error:
            self._connecting = None
            self._wiring.fleet.mark(replica.id, False, str(error))  # noqa: FBT003 - the fleet's signature
            self._unreachable = error
            self._excluded |= {replica.id}
            self._release()
            self._route()
        else:
            self._connecting = None
            self._send(connection)

    def _send(self, connection: UpstreamConnection) -> None:
        wiring, record = self._wiring, self.record
        self._connection = connection
        record.attempts += 1
        connection.send(self._head(), self._request.body, self)
        record.sent = connection.sent_at
        wiring.policy.observe(RouteSent(replica=self._replica.id, task=record.task))

    def _head(self) -> bytes:
        replica = self._replica
        pool = self._wiring.upstream.pool(replica)
        key = replica.api_key
        headers = end_to_end(self._request.headers, _NOT_SENT if key is None else _NOT_SENT_WITH_KEY)
        # Compressed answers could not be looked into; between a gateway and its engines bandwidth is not short.
        lines = [b"POST %b/chat/completions HTTP/1.1\r\nhost: %b\r\n" % (pool.base_path, pool.host)]
        lines += [b"%b: %b\r\n" % header for header in headers]
        if key is not None:
            lines.append(b"authorization: Bearer %b\r\n" % key.encode())
        lines.append(self._traceparent())
        lines.append(b"accept-encoding: identity\r\ncontent-length: %d\r\n\r\n" % len(self._request.body))
        return b"".join(lines)

    def _traceparent(self) -> bytes:
        """The trace context with this call's span as the parent, so that an engine's own spans hang below it."""
        theirs = self._request.fields.get(b"traceparent")
        record = self.record
        if record.identity is None:
            return b"" if theirs is None else b"traceparent: %b\r\n" % theirs
        span = record.span.encode()
        if theirs is not None:
            parts = theirs.split(b"-")
            if len(parts) < 4:  # noqa: PLR2004 - version, trace, parent, flags
                return b"traceparent: %b\r\n" % theirs
            return b"traceparent: %b\r\n" % b"-".join([parts[0], parts[1], span, *parts[3:]])
        task = record.task
        if len(task) == _TRACE_ID and _HEX.issuperset(task):
            return b"traceparent: 00-%b-%b-01\r\n" % (task.encode(), span)
        return b""

    # --- what the engine's side tells

    def answer_head(self, status: int, headers: Headers) -> None:
        """The answer begins."""
        extra = [(b"x-headway-replica", self._replica.id.encode("latin-1", "replace"))]
        if self.record.task:
            extra.append((b"x-headway-task", self.record.task.encode("latin-1", "replace")))
        self._relay = relay_for(
            self._client,
            status,
            headers,
            extra,
            limit=self._wiring.limits.response_bytes,
            observed=self._wiring.journal.active,
        )

    def answer_body(self, data: bytes, now: float) -> None:
        """A piece of the answer."""
        try:
            cast("Relay", self._relay).body(data, now)
        except BrokenAnswerError as error:
            self._cut(failure(error.error, 502, error))

    def answer_end(self, now: float) -> None:
        """The answer is complete."""
        self._connection = None
        try:
            cast("Relay", self._relay).end(now)
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
        message = f"Replica {self._replica.id!r} {breakdown.detail}. Try again; if it persists, look at its log."
        self._fail(failure(breakdown.error, status, message))

    # --- what the client's side tells

    def client_gone(self, error: str) -> None:
        """Nobody waits for the answer any more: the engine is told at once by cutting the connection."""
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
        if self._relay is None:
            self._client.fail(problem)
        else:
            self._relay.fail(problem)
        self._end()

    def _end(self) -> None:
        wiring, record = self._wiring, self.record
        wiring.calls.discard(self)
        if self._relay is not None:
            self._relay.note(record)
        self._release()
        wiring.journal.close(record, wiring.clock.now())

    def _release(self) -> None:
        if self._held:
            self._held = False
            replica = self._replica.id
            self._wiring.fleet.finished(replica)
            failed = self.record.error is not None
            self._wiring.policy.observe(RouteDone(replica=replica, task=self.record.task, failed=failed))

    def _no_replica(self, decision: RouteDecision) -> Failure:
        reason = f"{decision.receipt.reason[:1].upper()}{decision.receipt.reason[1:]}"
        if decision.refusal == "unknown_model":
            names = ", ".join(self._wiring.fleet.models())
            return failure("unknown_model", 404, f"{reason}. Use one of: {names}.")
        if self._unreachable is not None:
            return failure("upstream_connect", 502, self._unreachable)
        return failure("no_replica", 503, f"{reason}. See /health for the state of the replicas.")
