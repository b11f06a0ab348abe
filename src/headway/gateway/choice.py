"""Which replica a call goes to: by the routing policy, among those that no breaker bars."""

from typing import Final

from msgspec import structs

from headway.gateway.breakers import Breakers, left_out
from headway.gateway.wiring import Wiring
from headway.policy.route import RouteDecision, RouteRequest
from headway.policy.routing.candidates import noted

_PASSED_OVER: Final = "All replicas that could answer fail calls; as there is no other, this one is asked all the same."


def choose(wiring: Wiring, request: RouteRequest, breakers: Breakers, now: float) -> RouteDecision:
    """The policy's decision at ``now``. Where breakers bar all that could answer, they are passed over.

    A breaker is there to have calls answered elsewhere. Where there is no elsewhere it would only turn failures of
    some calls into failures of all.
    """
    view, barred = wiring.fleet.view(), breakers.barred(now)
    if not barred:
        return wiring.policy.decide(request, view, now)
    spared = structs.replace(request, excluded=request.excluded | barred)
    decision = wiring.policy.decide(spared, view, now)
    if decision.replica is None:
        decision = wiring.policy.decide(request, view, now)
        if decision.replica is not None:
            return noted(decision, (_PASSED_OVER,))
        return decision
    return noted(decision, left_out(barred, request, view))
