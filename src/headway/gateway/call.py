"""One call on its way: request in, replica chosen, answer relayed as it comes, account given at the end."""

import asyncio
from typing import Final, cast

from msgspec import structs

from headway.core.errors import BadInputError, HeadwayError
from headway.core.fleet import ReplicaId
from headway.core.span import ErrorType, Receipt, Setback
from headway.gateway.connection import Breakdown, UpstreamConnection
from headway.gateway.door import Visit
from headway.gateway.forward import request_head
from headway.gateway.front import Client, Request
from headway.gateway.interpreted import Speech, interpreted
from headway.gateway.pool import Pool
from headway.gateway.refusals import no_replica, not_spoken
from headway.gateway.relay import BrokenAnswerError, Relay, relay_for
from headway.gateway.responses import Failure, Headers, connection_bound, failure
from headway.gateway.way import Way
from headway.gateway.wiring import Wiring
from headway.policy.route import RouteDecision, RouteDone, RouteEvent, RouteRequest, RouteSent
from headway.wire.dialect import Asked, Dialect
from headway.wire.translate.exchange import Exchange

_IDLE_RACE_SECONDS: Final = 0.25
"""A kept-alive connection that ends this soon after a request was written to it, without one byte of an answer, had
been closed by the replica before it read the request: an engine at work on it would not have hung up yet."""
_OK: Final = 200


class Call:
    """A call from the request to the last byte of its answer. It ends exactly once, however it ends.

    When it is sent again, and when not. A chat completion changes nothing at an engine; sent twice, it may cost twice.
    So it is sent again only where no byte of an answer came and whoever had it cannot be at work on it any more:

    - No connection was had: nothing was sent. Every other replica is tried in turn.
    - A kept-alive connection had died before the request was written to it: the same replica, on a new connection.
    - The replica closed or reset the connection without a word: it crashed, was killed, or something before it was.
      What it had computed is lost. Another replica gets the call, but only one: a request that kills its engine must
      not kill them all. Where there is no other, the failure is the answer.

    A replica that is merely late may be at work, and one that has begun to answer has been paid: never sent again. One
    exception costs nothing: a refusal of the option that asks a stream for its usage, which is our own addition.

    ``attempts`` of the span counts what was sent.
    """

    # Defaults on the class: most calls change few of them, and every microsecond is every caller's.
    _asks: Asked
    _replica: ReplicaId
    _pool: Pool
    _way: Way
    _speech: Speech | None = None
    """The replica is asked in another dialect than the caller's."""
    _excluded: frozenset[ReplicaId] = frozenset()
    _begun: float
    """When the attempt under way began."""
    _setback: Failure | None = None
    """Why the replica that was tried last did not serve."""
    _held = False
    """The fleet counts this call as in flight on ``_replica``."""
    _connecting: asyncio.Task[None] | None = None
    _connection: UpstreamConnection | None = None
    _resent = False
    """A connection had died idle, and the call was sent to the same replica once more."""
    _moved = False
    """A replica hung up without a word, and the call went to another."""
    _asked = False
    """The engine is asked for the stream's usage, and the client had not asked."""
    _plain = False
    """The engine refused to be asked."""
    _relay: Relay
    _answered = False
    """The head of an answer has come, so there is a relay."""
    _ended = False

    def __init__(
        self, wiring: Wiring, request: Request, client: Client, dialect: Dialect, visit: Visit | None = None
    ) -> None:
        self._wiring = wiring
        self._request = request
        self._client = client
        self._dialect = dialect
        self.record = wiring.journal.open(request.received, dialect)
        self._visit = visit
        if visit is not None:
            self.record.tenant = visit.caller.tenant.id

    def start(self) -> None:
        """Read the request and send it on."""
        request = self._request
        self._client.watch(self)
        try:
            asks = self._asks = self._dialect.read(request.body)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return
        wiring = self._wiring
        wiring.journal.identify(self.record, asks, request.fields, request.received)
        self._excluded = wiring.fleet.deaf_to(self._dialect)
        if self._visit is None:
            self._route(request.received)
        else:
            self._visit.begin(self, asks, request.body)

    def admitted(self, now: float) -> None:
        """The call may be made: send it on."""
        self._route(now)

    # --- sending

    def _route(self, now: float) -> None:
        wiring, record = self._wiring, self.record
        request = RouteRequest(model=record.model, task=record.task, excluded=self._excluded)
        decision = wiring.policy.decide(request, wiring.fleet.view(), now)
        replica = decision.replica
        if replica is None:
            record.receipt = record.receipt or decision.receipt
            self._fail(self._setback or self._no_replica(decision))
            return
        if self._setback is None:
            self._begun = now
        else:
            self._set_back(self._setback.error, now)
        record.receipt = decision.receipt
        self._replica = record.replica = replica.id
        wiring.fleet.started(replica.id)
        self._held = True
        try:
            pool = self._pool = wiring.upstream.pool(replica)
        except BadInputError as error:
            self._pass_over(error)
            return
        record.provider = pool.provider
        way = self._way = cast("Way", pool.way(self._dialect))  # those who have none are excluded
        if way.translated and not self._translated(way, now):
            return
        self._send_or_connect()

    def _translated(self, way: Way, now: float) -> bool:
        """Put the request into the replica's dialect; whether it can be."""
        try:
            exchange = Exchange(self._dialect, way.engine, self._request.body, created=int(now))
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return False
        self._speech = Speech(self._dialect, way.engine, exchange)
        told = f"Translated into {way.engine.name}."
        receipt = cast("Receipt", self.record.receipt)
        self.record.receipt = structs.replace(receipt, notes=(*receipt.notes, told, *exchange.notes))
        return True

    def _send_or_connect(self) -> None:
        connection = self._pool.take()
        if connection is None:
            self._connect()
        else:
            self._send(connection)

    def _connect(self) -> None:
        self._connecting = asyncio.get_running_loop().create_task(self._connected())

    async def _connected(self) -> None:
        try:
            try:
                connection = await self._pool.connect()
            except HeadwayError as error:
                self._connecting = None
                self._pass_over(error)
            else:
                self._connecting = None
                self._send(connection)
        except Exception as error:  # noqa: BLE001 - a task's exception is nobody's, and the client would wait
            self._connecting = None
            self.met(error)

    def _pass_over(self, error: HeadwayError) -> None:
        """The replica that was chosen cannot be sent anything: choose another."""
        self._wiring.fleet.mark(self._replica, False, str(error))  # noqa: FBT003 - the fleet's signature
        self._try_another(failure("upstream_connect", 502, error))

    def _try_another(self, setback: Failure) -> None:
        self._setback = setback
        self._excluded |= {self._replica}
        self._release(failed=True)
        self._route(self._wiring.clock.now())

    def _set_back(self, error: ErrorType, now: float) -> None:
        """The attempt under way has failed, and another begins."""
        self.record.setbacks += (Setback(replica=self._replica, error=error, start=self._begun, end=now),)
        self._begun = now

    def _send(self, connection: UpstreamConnection) -> None:
        record = self.record
        self._connection = connection
        record.attempts += 1
        opening, body = self._outgoing()
        head = request_head(self._request, self._way, record, len(opening) + len(body))
        connection.send(head + opening, body, self)
        record.sent = connection.sent_at
        self._observe(RouteSent(replica=self._replica, task=record.task))

    def _outgoing(self) -> tuple[bytes, bytes | memoryview]:
        """The body as the engine gets it, in two pieces: the client's, and in a stream our wish to know its usage."""
        asks, body = self._asks, self._request.body
        if self._way.translated:
            return b"", cast("Speech", self._speech).exchange.body
        wished = asks.stream and not self._plain and self._wiring.journal.active
        if wished and self._pool.asked_for_usage is not False:
            asking = asks.asking_for_usage(body)
            if asking is not None:
                self._asked = True
                return asking
        self._asked = False
        return b"", body

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
        if self._way.translated:
            speech, limit = cast("Speech", self._speech), wiring.limits.response_bytes
            self._relay = interpreted(self._client, speech, status, passed, fields, limit=limit)
            return
        self._relay = relay_for(
            self._client,
            self._dialect,
            status,
            passed,
            fields,
            limit=wiring.limits.response_bytes,
            observed=wiring.journal.active,
            hide_usage=self._asked,
        )
        if status == _OK and (self._asked or self._plain):
            self._pool.asked_for_usage = self._asked

    def answer_body(self, data: bytes, now: float) -> None:
        """A piece of the answer."""
        try:
            self._relay.body(data, now)
        except BrokenAnswerError as error:
            self._cut(failure(error.error, 502, error))

    def answer_end(self, now: float) -> None:
        """The answer is complete."""
        self._connection = None
        if self._asked and self._refused_to_tell():
            self._plain, self._answered = True, False
            self._set_back(ErrorType("usage_option_refused"), now)
            self._send_or_connect()
        else:
            self._finish(now)

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        """The exchange broke off; what becomes of the call then is told above."""
        connection = cast("UpstreamConnection", self._connection)
        self._connection = None
        if self._answered and self._relay.said_all:
            self._finish(now)  # the client has the whole answer: that the engine hung up early is nothing to it
            return
        hung_up = breakdown.error == "upstream_closed" and breakdown.silent
        raced = connection.reused and now - connection.sent_at < _IDLE_RACE_SECONDS
        if hung_up and raced and not self._resent:
            self._resent = True
            self._set_back(breakdown.error, now)
            self._connect()
            return
        status = 504 if breakdown.error in {"upstream_timeout", "upstream_stalled"} else 502
        message = f"Replica {self._replica!r} {breakdown.detail}. Try again; if it persists, look at its log."
        problem = failure(breakdown.error, status, message)
        if hung_up and not self._moved:
            self._moved = True
            self._try_another(problem)
        else:
            self._fail(problem)

    def _refused_to_tell(self) -> bool:
        """Whether the engine took offence at being asked for usage.

        Until a replica has answered such a request, every refusal may be for that; later only one that names the field.
        """
        refusal = self._relay.refusal
        return refusal is not None and (self._pool.asked_for_usage is None or b"stream_options" in refusal)

    def _finish(self, now: float) -> None:
        try:
            self._relay.end(now)
        except BrokenAnswerError as error:
            self._fail(failure(error.error, 502, error))
        else:
            self._end()

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

    def met(self, error: Exception) -> None:
        """A fault that nobody foresaw ends the call that it is met in, and no other."""
        problem = self._wiring.unforeseen.met(error)
        if not self._ended:
            self._cut(problem)

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
        self._ended = True
        wiring, record = self._wiring, self.record
        try:
            if self._answered:
                self._relay.note(record)
                self._learn()
        finally:
            self._release(failed=record.error is not None)
            if self._visit is not None:
                self._visit.end(record)
            wiring.journal.close(record)

    def _learn(self) -> None:
        """An engine that sends timings with its tokens, as llama.cpp does, need not be asked for them again.

        Asked, it moves its timings into the event that the client is not shown.
        """
        answer = self.record.answer
        if answer is not None and answer.engine is not None and answer.engine.cached_tokens is not None:
            self._pool.asked_for_usage = False

    def _release(self, *, failed: bool) -> None:
        if self._held:
            self._held = False
            replica = self._replica
            self._wiring.fleet.finished(replica)
            self._observe(RouteDone(replica=replica, task=self.record.task, failed=failed))

    def _observe(self, event: RouteEvent) -> None:
        """Tell the policy; that it cannot bear the news is no reason to fail a call."""
        try:
            self._wiring.policy.observe(event)
        except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way
            self._wiring.unforeseen.met(error)

    def _no_replica(self, decision: RouteDecision) -> Failure:
        reason = f"{decision.receipt.reason[:1].upper()}{decision.receipt.reason[1:]}"
        fleet = self._wiring.fleet
        deaf = fleet.deaf_to(self._dialect)
        if decision.refusal == "excluded" and deaf:
            return not_spoken(self.record.model, self._dialect, deaf)
        if decision.refusal == "unknown_model":
            return failure("unknown_model", 404, f"{reason}. Use one of: {', '.join(fleet.models())}.")
        return no_replica(reason, fleet.health())
