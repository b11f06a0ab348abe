"""Which replicas can take a call at all, and what to say when none can."""

from msgspec import structs

from headway.core.fleet import FleetView, ReplicaLoad
from headway.core.span import Candidate, Receipt
from headway.policy.route import Refusal, RouteDecision, RouteRequest


def able(request: RouteRequest, view: FleetView) -> list[ReplicaLoad]:
    """Replicas that are healthy, serve the model and are not excluded, in the fleet's order."""
    model, excluded = request.model, request.excluded
    return [
        load
        for load in view.loads
        if load.healthy
        and load.replica.id not in excluded
        and (not load.replica.models or model in load.replica.models)
    ]


def chosen(
    policy: str, load: ReplicaLoad, reason: str, scores: tuple[Candidate, ...], notes: tuple[str, ...] = ()
) -> RouteDecision:
    """A decision for ``load``."""
    replica = load.replica
    receipt = Receipt(policy=policy, winner=replica.id, reason=reason, candidates=scores, notes=notes)
    return RouteDecision(replica=replica, receipt=receipt)


def noted(decision: RouteDecision, notes: tuple[str, ...]) -> RouteDecision:
    """``decision``, with more for its receipt to say."""
    if not notes:
        return decision
    receipt = structs.replace(decision.receipt, notes=(*decision.receipt.notes, *notes))
    return structs.replace(decision, receipt=receipt)


def none(policy: str, request: RouteRequest, view: FleetView) -> RouteDecision:
    """The decision where `able` found nobody: it says why."""
    serving = [load for load in view.loads if not load.replica.models or request.model in load.replica.models]
    refusal: Refusal
    if not view.loads:
        refusal, reason = "unhealthy", "the fleet is empty"
    elif not serving:
        refusal, reason = "unknown_model", f"no replica serves the model {request.model!r}"
    elif not any(load.healthy for load in serving):
        refusal, reason = "unhealthy", "every replica that serves the model is unhealthy"
    else:
        refusal, reason = "excluded", "every healthy replica that serves the model was tried already"
    return RouteDecision(replica=None, receipt=Receipt(policy=policy, winner="", reason=reason), refusal=refusal)
