"""What can be known of a fleet from its calls alone: caches, work under way, speeds."""

from typing import Final, assert_never

from headway.core.fleet import ReplicaId
from headway.policy.route import (
    RouteDone,
    RouteElsewhere,
    RouteEvent,
    RouteLost,
    RouteRequest,
    RouteSent,
    RouteStarted,
)
from headway.policy.routing.flights import Flight, Flights
from headway.policy.routing.prefixes import MAX_BYTES, Prefixes
from headway.policy.speed import Speeds

_ANSWER: Final = 200.0
"""Tokens of an answer until one was seen: about the median of coding agents."""
_SMOOTHING: Final = 0.05


class Knowledge:
    """Prefix index, flights and speeds, fed by one stream of events.

    Events without a call's id, time and request say too little and are passed over.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.prefixes = Prefixes(max_bytes)
        self.flights = Flights()
        self.speeds = Speeds()
        self.answer = _ANSWER
        """Mean output tokens of late."""

    def observe(self, event: RouteEvent) -> Flight | None:
        """Learn from ``event``; the flight that it ended, if it did."""
        match event:
            case RouteSent(replica=replica, at=at, request=request):
                if request is not None and at is not None and request.call:
                    holding = self.prefixes.insert(replica, request.prompt)
                    pace = self.speeds.pace(replica)
                    self.flights.assume(replica, at, pace)
                    self.flights.sent(replica, request, at, holding, self.output(request))
            case RouteStarted():
                self.flights.started(event)
            case RouteDone():
                flight = self.flights.done(event)
                if flight is not None and not event.failed:
                    self._learn(flight, event)
                return flight
            case RouteLost(replica=replica):
                self.flights.lost(event)
                self.prefixes.forget(replica)
                self.speeds.forget(replica)
            case RouteElsewhere(replica=replica, prompt=prompt):
                self.prefixes.insert(replica, prompt)
            case _:
                assert_never(event)
        return None

    def output(self, request: RouteRequest) -> int:
        """Tokens that the answer is expected to have."""
        return int(self.answer) if request.output_tokens is None else request.output_tokens

    def seconds(self, request: RouteRequest, replica: ReplicaId) -> float:
        """Expected time of a call at ``replica``, with what is before it there."""
        prompt, load, pace = request.prompt, self.flights.load(replica), self.speeds.pace(replica)
        held = self.prefixes.match(prompt).get(replica, 0)
        work = (prompt[-1][1] if prompt else 0) - held + load.prefill
        return pace.first_token(work, load.decoding) + pace.answer(self.output(request), load.decoding)

    def _learn(self, flight: Flight, event: RouteDone) -> None:
        replica, output, at = event.replica, event.output_tokens, event.at
        uncached = flight.uncached
        if event.cached_tokens is not None:
            self.prefixes.reported(replica, flight.holding, event.cached_tokens)
            if event.input_tokens is not None:
                uncached = flight.uncached = max(0, event.input_tokens - event.cached_tokens)
        if output is not None:
            self.answer += _SMOOTHING * (output - self.answer)
        speeds, work = self.speeds, flight.ahead + uncached
        if event.prefill is not None:
            speeds.prefill(replica, *event.prefill)
        if flight.first is not None:
            first = flight.first - flight.sent
            if output is None or at is None:
                speeds.first_token(replica, first, work, flight.beside)
            else:
                beside = self.flights.load(replica).decoding
                speeds.streamed(replica, first, work, flight.beside, (at - flight.first, output - 1, beside))
        elif at is not None:
            speeds.whole(replica, at - flight.sent, work, flight.beside, output or int(self.answer))
