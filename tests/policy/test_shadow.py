"""A policy in the shadow: agreement and what it would have saved are counted, by hand-made expectations."""

from routing import call, chain, fleet

from headway.core.fleet import FleetView, ReplicaId
from headway.core.span import Receipt
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest, RouteSent
from headway.policy.shadow import Shadow

TWO = fleet(a=0, b=0)


class Always:
    """Sends every call to the second replica."""

    name = "always"

    def __init__(self) -> None:
        self.told: list[RouteEvent] = []

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        del request, now
        return RouteDecision(replica=view.loads[1].replica, receipt=Receipt(policy="always", winner="b", reason=""))

    def observe(self, event: RouteEvent) -> None:
        self.told.append(event)


def test_agreement_and_expected_seconds_are_counted() -> None:
    policy = Always()
    shadow = Shadow(policy, lambda _, replica: {"a": 3.0, "b": 1.0}[replica])
    request = call("1", chain((1, 100)), session="s")
    assert shadow.sent(request, ReplicaId("b"), TWO, 1.0) is None
    assert shadow.sent(request, ReplicaId("a"), TWO, 2.0) == (
        "always, which is tried in the shadow, would have sent it to b, expected 2.000 s sooner."
    )
    assert (shadow.same, shadow.other, shadow.failed, shadow.saved) == (1, 1, 0, 2.0)


def test_it_is_told_where_calls_really_went() -> None:
    policy = Always()
    shadow = Shadow(policy, lambda _, __: 0.0)
    request = call("1", chain((1, 100)), session="s")
    shadow.sent(request, ReplicaId("a"), TWO, 2.0)
    assert policy.told == [RouteSent(replica=ReplicaId("a"), task=request.task, at=2.0, request=request)]
