"""One call on its way: request in, replica chosen, answer relayed as it comes, account given at the end."""

import asyncio
from typing import Final, cast

from msgspec import structs

from headway.core.errors import BadInputError, HeadwayError
from headway.core.fleet import ReplicaId
from headway.core.span import ErrorType, Receipt, Setback
from headway.gateway.connection import Breakdown, UpstreamConnection
from headway.gateway.door import Visit
from headway.gateway.forward import answer_headers, request_head
from headway.gateway.front import Client, Request
from headway.gateway.interpreted import Speech, interpreted
from headway.gateway.naming import UNSERVED, Chain, Naming
from headway.gateway.pool import Pool
from headway.gateway.refusals import broke_off, no_answer, unserved
from headway.gateway.relay import BrokenAnswerError, Relay, relay_for
from headway.gateway.responses import Failure, Headers, failure
from headway.gateway.way import Way
from headway.gateway.wiring import Wiring
from headway.policy.route import RouteDone, RouteEvent, RouteRequest, RouteSent
from headway.wire.dialect import Asked, Dialect

_IDLE_RACE_SECONDS: Final = 0.25
"""A kept-alive connection that ends this soon after a request was written to it, without one byte of an answer, had
been closed by the replica before it read the request: an engine at work on it would not have hung up yet."""
_OK: Final = 200


class Call:
    """A call from the request to the last byte of its answer. It ends exactly once, however it ends.

    Sent twice, it may cost twice. So a model is sent it again only where no byte of an answer came and whoever had it
    cannot be at work on it any more:

    - No connection was had: every other replica is tried in turn.
    - A kept-alive connection had died before the request was written to it: the same replica, on a new connection.
    - The replica hung up without a word: it crashed, and what it had computed is lost. One other replica gets the call:
      a request that kills its engine must not kill them all.
    - It refused the option that asks a stream for its usage, which is our own addition.

    Where the model cannot answer, and the client has had no byte, the next of its chain is asked, if it has one.
    """

    # Defaults on the class: most calls change few of them, and every microsecond is every caller's.
    _asks: Asked
    _replica: ReplicaId
    _pool: Pool
    _way: Way
    _chain: Chain | None = None
    """The models that may answer; ``None``: the one that was asked for."""
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
        naming = wiring.passes.naming
        if naming is not None and not self._named(naming):
            return
        if self._visit is None:
            self.route(request.received)
        else:
            self._visit.begin(self, asks, request.body, self._chain)

    def _named(self, naming: Naming) -> bool:
        """Find out which models may answer; whether any may."""
        chain = naming.choose(self.record, self._asks, self._request, self._request.received)
        if isinstance(chain, Failure):
            self._fail(chain)
            return False
        if chain is not None:
            self._chain, self.record.model = chain, chain.model
        return True

    # --- sending

    def route(self, now: float) -> None:
        """Choose a replica, and send the call to it."""
        wiring, record = self._wiring, self.record
        request = RouteRequest(model=record.model, task=record.task, excluded=self._excluded)
        decision = wiring.policy.decide(request, wiring.fleet.view(), now)
        replica = decision.replica
        if replica is None:
            record.receipt = record.receipt or decision.receipt
            problem = self._setback or no_answer(decision, record.model, self._dialect, wiring.fleet)
            if not self._falls_back(problem):
                self._fail(problem)
            return
        if self._setback is None:
            self._begun = now
        else:
            self._set_back(self._setback.error, now)
        receipt, chain = decision.receipt, self._chain
        record.receipt = receipt if chain is None else structs.replace(receipt, notes=chain.notes)
        self._replica = record.replica = replica.id
        wiring.fleet.started(replica.id)
        self._held = True
        try:
            pool = self._pool = wiring.upstream.pool(replica)
            way = self._way = pool.way(self._dialect)
        except BadInputError as error:
            self._pass_over(error)
            return
        record.provider = pool.provider
        if way.translated and not self._translated(way, now):
            return
        self._send_or_connect()

    def _translated(self, way: Way, now: float) -> bool:
        """Put the request into the replica's dialect; whether it can be."""
        try:
            speech = self._speech = Speech(self._dialect, way.engine, self._body, now)
        except BadInputError as error:
            self._fail(failure("bad_request", 400, error))
            return False
        receipt = cast("Receipt", self.record.receipt)
        self.record.receipt = structs.replace(receipt, notes=receipt.notes + speech.notes)
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
        self.route(self._wiring.clock.now())

    @property
    def _body(self) -> bytes:
        """The request's, in which the model is the one that is asked."""
        return self._request.body if self._chain is None else self._chain.body

    def _falls_back(self, problem: Failure) -> bool:
        """Ask the next model that may answer; whether there is one."""
        chain, record = self._chain, self.record
        if chain is None or not chain.more:
            return False
        chain.next(problem.error)
        record.model = chain.model
        self._release(failed=True)
        self._excluded = self._wiring.fleet.deaf_to(self._dialect)
        self._answered = self._resent = self._moved = self._plain = False
        self.route(self._wiring.clock.now())
        return True

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
        asks, body = self._asks, self._body
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
        passed = answer_headers(headers, fields, self._pool.shown_as, self.record.task)
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
        if self._asked and self._pool.minds_being_asked(self._relay.refusal):
            self._plain, self._answered = True, False
            self._set_back(ErrorType("usage_option_refused"), now)
            self._send_or_connect()
        elif self._chain is None or not self._chain.more or self._relay.status not in UNSERVED:
            self._finish(now)
        else:
            self._setback = unserved(self._replica, self._relay.status)
            self._falls_back(self._setback)

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
        problem = broke_off(self._replica, breakdown)
        if hung_up and not self._moved:
            self._moved = True
            self._try_another(problem)
            return
        if not self._answered and self._chain is not None and self._chain.more:
            self._setback = problem
            self._falls_back(problem)
        else:
            self._fail(problem)

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
                self._pool.heard(record.answer)
        finally:
            self._release(failed=record.error is not None)
            if self._visit is not None:
                self._visit.end(record)
            wiring.journal.close(record)

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
