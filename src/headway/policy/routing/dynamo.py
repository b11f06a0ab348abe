"""Dynamo's KV router: prefill and decode in blocks of the KV cache."""

from math import exp
from typing import Final

from headway.core.fleet import FleetView
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest
from headway.policy.routing.candidates import able, chosen, none
from headway.policy.routing.failures import Failures
from headway.policy.routing.knowledge import Knowledge

_BLOCK: Final = 16
"""Tokens in a block of the KV cache, vLLM's default."""


class DynamoCost:
    """Published rule of NVIDIA Dynamo's KV router, all in blocks; the lowest cost wins.

    cost = max(0, (active_prefill + input) / block - credit) + decode_blocks

    ``credit`` = blocks of the prompt that the replica holds / (1 + decay · excess load), excess load being its decode
    blocks above the least of the fleet. Only the device's cache is known here, so the terms for host and disk are nil.

    Args:
        temperature: above 0 the winner is drawn with probability ∝ exp(-cost / (temperature · spread of costs)).
        decay: how fast a loaded replica's credit shrinks; 0 as published: not at all.
    """

    name = "dynamo"
    wants_all = True

    def __init__(self, temperature: float = 0.0, decay: float = 0.0) -> None:
        self._temperature = temperature
        self._decay = decay
        self._known = Knowledge()
        self._failures = Failures()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The least cost, or one drawn by cost."""
        del now
        loads, notes = self._failures.spare(request.task, able(request, view))
        if not loads:
            return none(self.name, request, view)
        matched = self._known.prefixes.match(request.prompt)
        tokens = request.prompt[-1][1] if request.prompt else 0
        flying = [self._known.flights.load(load.replica.id) for load in loads]
        decode = [-(-flight.tokens // _BLOCK) for flight in flying]
        least = min(decode)
        costs = [
            max(0.0, (flight.prefill + tokens) / _BLOCK - self._credit(matched.get(load.replica.id, 0), blocks - least))
            + blocks
            for load, flight, blocks in zip(loads, flying, decode, strict=True)
        ]
        place = self._drawn(costs, request.draw) if self._temperature else costs.index(min(costs))
        scores = tuple([Candidate(load.replica.id, cost) for load, cost in zip(loads, costs, strict=True)])
        reason = "drawn by cost in blocks" if self._temperature else "least prefill and decode blocks"
        return chosen(self.name, loads[place], reason, scores, notes)

    def observe(self, event: RouteEvent) -> None:
        """Keep count of prefill, decode and caches."""
        self._failures.observe(event)
        self._known.observe(event)

    def _credit(self, matched: int, excess: int) -> float:
        return matched // _BLOCK / (1 + self._decay * excess)

    def _drawn(self, costs: list[float], draw: float) -> int:
        spread = max(costs) - min(costs) or 1.0
        weights = [exp((min(costs) - cost) / (self._temperature * spread)) for cost in costs]
        left = draw * sum(weights)
        for place, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return place
        return len(costs) - 1
