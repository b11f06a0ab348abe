"""One replica asked: a connection had, the request sent, the answer passed on as it comes."""

import asyncio
from typing import Final, Protocol, cast

from msgspec import structs

from headway.core.errors import BadInputError, HeadwayError
from headway.core.fleet import Replica
from headway.core.span import ErrorType, Receipt, Setback
from headway.gateway.connection import Breakdown, UpstreamConnection
from headway.gateway.errand import Errand
from headway.gateway.forward import answer_headers, request_head
from headway.gateway.interpreted import Speech, interpreted
from headway.gateway.pool import Pool
from headway.gateway.relay import BrokenAnswerError, Relay, relay_for
from headway.gateway.responses import Failure, Headers, failure
from headway.gateway.way import Way
from headway.policy.resend.retry import UNSERVED
from headway.policy.route import RouteSent

_IDLE_RACE_SECONDS: Final = 0.25
"""A kept-alive connection that ends this soon after a request was written to it, without one byte of an answer, had
been closed by the replica before it read the request: an engine at work on it would not have hung up yet."""
_OK: Final = 200
_NO_FIELDS: Final[dict[bytes, bytes]] = {}


class Attempting(Protocol):
    """Who makes attempts, and is told how each one fares. After any of these but the first it does nothing more."""

    def begun(self, attempt: "Attempt", now: float) -> None:
        """The first piece of a good answer has come, and is passed on next. Told where `Wiring.heeded` says so."""
        ...

    def unreachable(self, attempt: "Attempt", error: HeadwayError) -> None:
        """The replica cannot be sent anything."""
        ...

    def broken(self, attempt: "Attempt", breakdown: Breakdown) -> None:
        """The replica broke off before the client had its answer."""
        ...

    def complete(self, attempt: "Attempt", now: float) -> None:
        """The replica has said all that it had to say; `Attempt.finish` gives it to the client."""
        ...

    def refused(self, attempt: "Attempt", problem: Failure) -> None:
        """What the replica answers cannot be passed on, or it cannot be asked this."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own that nobody foresaw."""
        ...


class Attempt:
    """An `Exchange` with one replica.

    The same replica is asked once more where the first time cannot have cost anything: a kept-alive connection had died
    before the request was written to it; or the option was refused that asks a stream for its usage, which is our own.
    """

    # Defaults on the class: most attempts change few of them, and every microsecond is every caller's.
    _speech: Speech | None = None
    """The replica is asked in another dialect than the caller's."""
    _connecting: asyncio.Task[None] | None = None
    _connection: UpstreamConnection | None = None
    _resent = False
    """A connection had died idle, and the call was sent once more."""
    _asked = False
    """The engine is asked for the stream's usage, and the client had not asked."""
    _plain = False
    """The engine refused to be asked."""
    _pool: Pool
    _way: Way
    fields: dict[bytes, bytes] = _NO_FIELDS
    """The answer's headers for looking up."""
    _relay: Relay
    _head: tuple[int, Headers, dict[bytes, bytes]] | None = None
    """Of an answer of which nothing else has come, where its beginning is heeded."""
    _awaited = False
    """Somebody waits to be told of the first token."""
    _heard: list[bytes] | None = None
    """What the engine says, where somebody looks into it."""
    answered = False
    """An answer has begun to come, so there is a relay."""
    sent = 0.0
    """When the request was handed to the replica; epoch seconds."""
    well: bool | None = None
    """Whether the replica did its part; ``None``: unknown."""
    trial = False
    """It tries whether the replica is well again."""

    def __init__(self, errand: Errand, attempting: Attempting, replica: Replica, begun: float) -> None:
        self._errand = errand
        self._attempting = attempting
        self.replica = replica
        self.begun = begun
        """Epoch seconds."""

    def start(self) -> None:
        """Send the request."""
        errand = self._errand
        try:
            pool = self._pool = errand.wiring.upstream.pool(self.replica)
            way = self._way = pool.way(errand.dialect)
        except BadInputError as error:
            self._attempting.unreachable(self, error)
            return
        errand.record.provider = pool.provider
        if way.translated and not self._translated(way):
            return
        self._send_or_connect()

    def _translated(self, way: Way) -> bool:
        """Put the request into the replica's dialect; whether it can be."""
        errand = self._errand
        try:
            speech = self._speech = Speech(errand.dialect, way.engine, errand.body, self.begun)
        except BadInputError as error:
            self._attempting.refused(self, failure("bad_request", 400, error))
            return False
        receipt = cast("Receipt", errand.record.receipt)
        errand.record.receipt = structs.replace(receipt, notes=receipt.notes + speech.notes)
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
                self._attempting.unreachable(self, error)
            else:
                self._connecting = None
                self._send(connection)
        except Exception as error:  # noqa: BLE001 - a task's exception is nobody's, and the client would wait
            self._connecting = None
            self._attempting.met(error)

    def _send(self, connection: UpstreamConnection) -> None:
        errand = self._errand
        record = errand.record
        self._connection = connection
        record.attempts += 1
        opening, body = self._outgoing()
        if errand.probe is not None:
            opening, body = errand.probe.asking(self._way.engine, opening, body)
        now = self.begun if record.deadline is None else errand.wiring.clock.now()
        head = request_head(errand.request, self._way, record, len(opening) + len(body), now)
        connection.send(head + opening, body, self)
        record.sent = self.sent = connection.sent_at
        if errand.wiring.passes.turns is None:
            errand.wiring.observe(RouteSent(replica=self.replica.id, task=record.task))

    def _outgoing(self) -> tuple[bytes, bytes | memoryview]:
        """The body as the engine gets it, in two pieces: the client's, and in a stream our wish to know its usage."""
        errand = self._errand
        asks, body = errand.asks, errand.body
        if self._way.translated:
            return b"", cast("Speech", self._speech).exchange.body
        wished = asks.stream and not self._plain and errand.wiring.journal.active
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
        if self._errand.wiring.heeded:
            self._head = status, headers, fields
        else:
            self._answers(status, headers, fields)

    def _answers(self, status: int, headers: Headers, fields: dict[bytes, bytes]) -> None:
        errand = self._errand
        wiring = errand.wiring
        self.fields = fields
        passed = answer_headers(headers, fields, self._pool.shown_as, errand.record.task)
        self.answered = True
        self._awaited = errand.record.stream is True and wiring.passes.turns is not None
        if errand.probe is not None:
            self._heard = errand.probe.listen(self._way.engine, fields)
        if self._way.translated:
            speech, limit = cast("Speech", self._speech), wiring.limits.response_bytes
            self._relay = interpreted(errand.client, speech, status, passed, fields, limit=limit)
            return
        self._relay = relay_for(
            errand.client,
            errand.dialect,
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
        if self._head is not None:
            if self._head[0] == _OK:
                self._attempting.begun(self, now)
            self._let_go()
        if self._heard is not None:
            self._heard.append(data)
        try:
            self._relay.body(data, now)
        except BrokenAnswerError as error:
            self.cut()
            self.well = False
            self._attempting.refused(self, failure(error.error, 502, error))
            return
        if self._awaited:
            self._look_for_first()

    def _look_for_first(self) -> None:
        """Tell the scheduler of the first token, once."""
        turns, first = self._errand.wiring.passes.turns, self._relay.first_token
        if turns is not None and first is not None:
            self._awaited = False
            turns.started(self._errand.record, self.replica.id, first)

    def _let_go(self) -> None:
        """Pass on the head that was held back."""
        if self._head is not None:
            held, self._head = self._head, None
            self._answers(*held)

    def answer_end(self, now: float) -> None:
        """The answer is complete."""
        self._connection = None
        self._let_go()
        if self._asked and self._pool.minds_being_asked(self._relay.refusal):
            self._plain, self.answered = True, False
            self.set_back(ErrorType("usage_option_refused"), now)
            self._send_or_connect()
        else:
            self._attempting.complete(self, now)

    def answer_broken(self, breakdown: Breakdown, now: float) -> None:
        """The exchange broke off."""
        connection = cast("UpstreamConnection", self._connection)
        self._connection = None
        hung_up = breakdown.error == "upstream_closed" and breakdown.silent
        raced = connection.reused and now - connection.sent_at < _IDLE_RACE_SECONDS
        if self.answered and self._relay.said_all:
            self._attempting.complete(
                self, now
            )  # the client has all of it: that the engine hung up early is nothing to it
        elif hung_up and raced and not self._resent:
            self._resent = True
            self.set_back(breakdown.error, now)
            self._connect()
        else:
            self._attempting.broken(self, breakdown)

    def met(self, error: Exception) -> None:
        """As `Exchange.met`."""
        self._attempting.met(error)

    # --- what whoever makes it tells

    @property
    def said_all(self) -> bool:
        """The client was sent all that it waits for."""
        return self.answered and self._relay.said_all

    @property
    def unserved(self) -> bool:
        """The replica could not do its part, or says that it cannot now."""
        return self.well is False or (self.answered and self._relay.status in UNSERVED)

    @property
    def told(self) -> bool:
        """The client was sent a part of its answer."""
        return self.answered and self._relay.begun

    @property
    def status(self) -> int:
        """Of the answer that has come."""
        return self._relay.status

    def set_back(self, error: ErrorType, now: float) -> None:
        """It has failed, and another begins: for the record."""
        setback = Setback(replica=self.replica.id, error=error, start=self.begun, end=now)
        self._errand.record.setbacks += (setback,)
        self.begun = now

    def claim(self) -> None:
        """Of two attempts it is the one that answers: for the record."""
        record = self._errand.record
        record.replica, record.provider = self.replica.id, self._pool.provider
        record.sent = self.sent or record.sent

    def finish(self, now: float) -> None:
        """Give the client the end of the answer.

        Raises:
            BrokenAnswerError: it is none.
        """
        self._relay.end(now)

    def fail(self, problem: Failure) -> None:
        """Tell the client what has gone wrong, as well as can still be done."""
        if self.answered:
            self._relay.fail(problem)
        else:
            self._errand.client.fail(problem)

    def note(self) -> None:
        """Write down what was learnt of the answer."""
        if self.answered:
            record = self._errand.record
            self._relay.note(record)
            self._pool.heard(record.answer)

    def pause(self) -> None:
        """Read no further for now."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Read on."""
        if self._connection is not None:
            self._connection.resume()

    def cut(self) -> None:
        """Give it up: the engine is told at once by cutting the connection."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
