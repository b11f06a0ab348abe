"""Preble's E2: exploit a cached prefix or explore a less loaded replica."""

from collections import Counter, deque
from typing import Final

from headway.core.fleet import FleetView, ReplicaId, ReplicaLoad
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteEvent, RouteLost, RouteRequest, RouteSent
from headway.policy.routing.candidates import able, chosen, none, noted
from headway.policy.routing.failures import Failures
from headway.policy.routing.knowledge import Knowledge

_WINDOW: Final = 180.0
_IMBALANCE: Final = 1.5


class _Recent:
    """What one replica was sent within the window."""

    def __init__(self) -> None:
        self.sent: deque[tuple[float, int, int]] = deque()
        """When, the prompt's digest, tokens that had to be computed."""
        self.uncached = 0
        self.uses = Counter[int]()

    def add(self, at: float, digest: int, uncached: int) -> None:
        self.sent.append((at, digest, uncached))
        self.uncached += uncached
        self.uses[digest] += 1

    def expire(self, now: float) -> None:
        while self.sent and now - self.sent[0][0] > _WINDOW:
            _, digest, uncached = self.sent.popleft()
            self.uncached -= uncached
            self.uses[digest] -= 1
            if not self.uses[digest]:
                del self.uses[digest]


class PrebleE2:
    """Published rule of Preble (ICLR 2025), over a window of 3 minutes; costs in seconds.

    Exploit where more tokens are cached than new: among the replicas that hold the longest prefix, the least loaded;
    if the busiest of the fleet costs at least 1.5 times the idlest and would be chosen, the idlest instead.
    Explore otherwise: the least load + evict.

    load = prefill seconds of the tokens computed in the window + calls in flight · mean answer · median TPOT;
    evict = prefill seconds of what would have to leave the cache, times how often it was used in the window.
    """

    name = "preble-e2"
    wants_all = True

    def __init__(self) -> None:
        self._known = Knowledge()
        self._failures = Failures()
        self._recent: dict[ReplicaId, _Recent] = {}

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """Exploit or explore."""
        loads, notes = self._failures.spare(request.task, able(request, view))
        if not loads:
            return none(self.name, request, view)
        tokens = request.prompt[-1][1] if request.prompt else 0
        matched = self._known.prefixes.match(request.prompt)
        costs = {load.replica.id: self._load(load, now) for load in loads}
        most = max((matched.get(load.replica.id, 0) for load in loads), default=0)
        if tokens - most < most:
            holders = [load for load in loads if matched.get(load.replica.id, 0) == most]
            return noted(self._exploit(holders, loads, costs), notes)
        for load in loads:
            replica = load.replica.id
            costs[replica] += self._evict(replica, tokens - matched.get(replica, 0))
        return noted(self._cheapest(loads, costs, "explore: least load and eviction"), notes)

    def observe(self, event: RouteEvent) -> None:
        """Keep the window, the caches and the speeds."""
        self._failures.observe(event)
        if isinstance(event, RouteSent) and event.request is not None and event.at is not None and event.request.prompt:
            digest, tokens = event.request.prompt[-1]
            held = self._known.prefixes.match(event.request.prompt).get(event.replica, 0)
            recent = self._recent.setdefault(event.replica, _Recent())
            recent.add(event.at, digest, tokens - held)
            recent.expire(event.at)
        elif isinstance(event, RouteLost):
            self._recent.pop(event.replica, None)
        self._known.observe(event)

    def _exploit(
        self, holders: list[ReplicaLoad], loads: list[ReplicaLoad], costs: dict[ReplicaId, float]
    ) -> RouteDecision:
        best = min(holders, key=lambda load: costs[load.replica.id])
        cost, least, most = costs[best.replica.id], min(costs.values()), max(costs.values())
        if cost == most and least < most and most >= _IMBALANCE * least:
            return self._cheapest(loads, costs, "rebalance: the holder is the busiest of all")
        scores = tuple([Candidate(load.replica.id, costs[load.replica.id]) for load in loads])
        return chosen(self.name, best, "exploit: most of the prompt is cached there", scores)

    def _cheapest(self, loads: list[ReplicaLoad], costs: dict[ReplicaId, float], reason: str) -> RouteDecision:
        scores = tuple([Candidate(load.replica.id, costs[load.replica.id]) for load in loads])
        return chosen(self.name, min(loads, key=lambda load: costs[load.replica.id]), reason, scores)

    def _load(self, load: ReplicaLoad, now: float) -> float:
        replica = load.replica.id
        pace = self._known.speeds.pace(replica)
        recent = self._recent.get(replica)
        computed = 0
        if recent is not None:
            recent.expire(now)
            computed = recent.uncached
        return computed * pace.prefill + load.in_flight * self._known.answer * pace.token

    def _evict(self, replica: ReplicaId, tokens: int) -> float:
        recent = self._recent.get(replica)
        if recent is None:
            return 0.0
        lost = sum(own * recent.uses[tail] for tail, own in self._known.prefixes.victims(replica, tokens))
        return lost * self._known.speeds.pace(replica).prefill
