"""Ours: the replica where the call costs the least time, its own and what it takes from others."""

from collections.abc import Mapping
from typing import Final

from headway.core.fleet import FleetView, ReplicaId, ReplicaLoad
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest
from headway.policy.routing.candidates import able, chosen, none
from headway.policy.routing.failures import Failures
from headway.policy.routing.homes import Homes, session_of
from headway.policy.routing.knowledge import Knowledge
from headway.policy.speed import GUESS

_STAY: Final = 0.9
"""A move has to save a tenth: moving for less only scatters a session over the fleet."""


class ExpectedSeconds:
    """One cost in seconds for each replica; the least wins, and among the nearly equal the session's home.

    cost = overhead + prefill·(uncached + ahead) + beside·d + d·(prefill·uncached + 2·token_beside·output)

    ``uncached``: tokens of the prompt that the replica is not thought to hold. ``ahead``: tokens that it has to compute
    first. ``d``: calls writing their answers there; they stand still while the prompt is computed, and each of them
    slows this one's tokens and is slowed by them. All factors are learnt for each replica (`headway.policy.speed`); one
    that has not answered yet is taken for one that has.

    Where the prompt is unknown, what the session's last call left at its home counts as cached there. Where that is
    unknown too and no replica is known to differ, the less loaded of two drawn ones (power of two choices).
    """

    name = "expected-seconds"
    wants_all = True

    def __init__(self) -> None:
        self.known = Knowledge()
        self._failures = Failures()
        self._homes = Homes()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The least expected cost."""
        loads, notes = self._failures.spare(request.task, able(request, view))
        if not loads:
            return none(self.name, request, view)
        known, prompt = self.known, request.prompt
        home = self._homes.get(request.session or request.task, now)
        tokens = prompt[-1][1] if prompt else 0
        matched = known.prefixes.match(prompt)
        if not prompt and home is not None:
            tokens = self._homes.tokens(session_of(request))
            matched = {home: tokens}
        if not tokens and len(loads) > 1:
            return self._of_two(loads, request.draw, notes)
        output = known.answer if request.output_tokens is None else request.output_tokens
        costs = self._costs(loads, tokens, output, matched)
        scores = tuple([Candidate(load.replica.id, cost) for load, cost in zip(loads, costs, strict=True)])
        least = min(costs)
        best = loads[costs.index(least)]
        if home is not None and best.replica.id != home:
            for load, cost in zip(loads, costs, strict=True):
                if load.replica.id == home and least > _STAY * cost:
                    best = load
        return chosen(self.name, best, _reason(best.replica.id, home, matched), scores, notes)

    def observe(self, event: RouteEvent) -> None:
        """Learn caches, work, speeds and homes."""
        self._failures.observe(event)
        self.known.observe(event)
        self._homes.observe(event)

    def _costs(
        self, loads: list[ReplicaLoad], tokens: int, output: float, matched: Mapping[ReplicaId, int]
    ) -> list[float]:
        flights, paces = self.known.flights.loads, self.known.speeds.paces
        guess = next(iter(paces.values()), GUESS)  # or whoever answered first would look the quickest for good
        costs: list[float] = []
        for load in loads:
            replica = load.replica.id
            pace = paces.get(replica, guess)
            uncached = tokens - matched.get(replica, 0)
            cost = pace.overhead + pace.prefill * uncached
            flight = flights.get(replica)
            if flight is not None and flight.calls:
                beside = flight.decoding
                cost += pace.prefill * (flight.prefill + beside * uncached)
                cost += beside * (pace.beside + 2.0 * pace.token_beside * output)
            costs.append(cost)
        return costs

    def _of_two(self, loads: list[ReplicaLoad], draw: float, notes: tuple[str, ...]) -> RouteDecision:
        first, rest = divmod(draw * len(loads), 1.0)
        one = int(first)
        other = (one + 1 + int(rest * (len(loads) - 1))) % len(loads)
        best = min(loads[one], loads[other], key=lambda load: load.in_flight)
        scores = tuple([Candidate(loads[place].replica.id, loads[place].in_flight) for place in (one, other)])
        return chosen(self.name, best, "nothing is known of the prompt: fewer in flight of two drawn", scores, notes)


def _reason(winner: ReplicaId, home: ReplicaId | None, matched: Mapping[ReplicaId, int]) -> str:
    if winner == home:
        return "costs least or nearly so, and is the session's home"
    return "costs least, and holds the beginning of the prompt" if winner in matched else "costs least"
