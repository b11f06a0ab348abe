"""What each replica is at work on, in tokens: kept from what was sent and what ended."""

from collections import deque

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.core.task import SpanId
from headway.policy.route import RouteDone, RouteLost, RouteRequest, RouteStarted
from headway.policy.routing.prefixes import Holding
from headway.policy.speed import Pace


class Flight(Struct, gc=False, kw_only=True):
    """One call under way."""

    replica: ReplicaId
    sent: float
    input_tokens: int
    uncached: int
    """Tokens that were expected to be computed; once it has ended and the engine has said so, those that were."""
    ahead: int
    """Tokens that were to be computed before these."""
    beside: int
    """Calls that were writing their answers when this one was sent."""
    output_tokens: int
    holding: Holding
    request: RouteRequest
    writing: bool = False
    first: float | None = None
    """When its first token came, where that was seen."""


class Load(Struct, gc=False):
    """One replica's work."""

    calls: int = 0
    prefill: int = 0
    """Tokens of calls without a first token yet that have to be computed."""
    decoding: int = 0
    """Calls that are writing their answers."""
    tokens: int = 0
    """Input tokens of all its calls."""
    output: int = 0
    """Expected output tokens of all its calls."""


IDLE = Load()


class Flights:
    """All calls under way, by call and summed up by replica."""

    def __init__(self) -> None:
        self._calls: dict[SpanId, Flight] = {}
        self.loads: dict[ReplicaId, Load] = {}
        self._silent: dict[ReplicaId, deque[tuple[SpanId, float]]] = {}

    def get(self, call: SpanId) -> Flight | None:
        """What is known of a call under way; not to be changed."""
        return self._calls.get(call)

    def load(self, replica: ReplicaId) -> Load:
        """The work of ``replica``; not to be changed."""
        return self.loads.get(replica, IDLE)

    def sent(self, replica: ReplicaId, request: RouteRequest, at: float, holding: Holding, output_tokens: int) -> None:
        """A call is under way. One that was already, elsewhere, has ended there."""
        self._end(request.call)
        load = self.loads.get(replica)
        if load is None:
            load = self.loads[replica] = Load()
        tokens = request.prompt[-1][1] if request.prompt else 0
        flight = Flight(
            replica=replica,
            sent=at,
            input_tokens=tokens,
            uncached=max(0, tokens - holding.tokens),
            ahead=load.prefill,
            beside=load.decoding,
            output_tokens=output_tokens,
            holding=holding,
            request=request,
        )
        self._calls[request.call] = flight
        if not request.stream:
            self._silent.setdefault(replica, deque()).append((request.call, at))
        load.calls += 1
        load.prefill += flight.uncached
        load.tokens += tokens
        load.output += output_tokens

    def started(self, event: RouteStarted) -> None:
        """A call has gone from prefill to decode."""
        flight = self._calls.get(event.call)
        if flight is None or flight.first is not None or flight.replica != event.replica:
            return
        flight.first = event.at
        self._write(flight)

    def assume(self, replica: ReplicaId, now: float, pace: Pace) -> None:
        """Calls that are not streamed show no first token: they go on to decode when it should have come."""
        silent = self._silent.get(replica)
        while silent:
            call, due_from = silent[0]
            flight = self._calls.get(call)
            if flight is not None and flight.replica == replica and flight.sent == due_from:
                if now - flight.sent < pace.first_token(flight.ahead + flight.uncached, flight.beside):
                    return
                self._write(flight)
            silent.popleft()

    def done(self, event: RouteDone) -> Flight | None:
        """A call has ended: what was known of it, if anything."""
        flight = self._calls.get(event.call)
        if flight is None or flight.replica != event.replica:
            return None
        return self._end(event.call)

    def lost(self, event: RouteLost) -> None:
        """A replica is gone, and its calls with it."""
        for call in [call for call, flight in self._calls.items() if flight.replica == event.replica]:
            self._end(call)
        self.loads.pop(event.replica, None)
        self._silent.pop(event.replica, None)

    def _write(self, flight: Flight) -> None:
        if not flight.writing:
            flight.writing = True
            load = self.loads[flight.replica]
            load.prefill -= flight.uncached
            load.decoding += 1

    def _end(self, call: SpanId) -> Flight | None:
        flight = self._calls.pop(call, None)
        if flight is None:
            return None
        load = self.loads[flight.replica]
        load.calls -= 1
        load.tokens -= flight.input_tokens
        load.output -= flight.output_tokens
        if not flight.writing:
            load.prefill -= flight.uncached
        else:
            load.decoding -= 1
        return flight
