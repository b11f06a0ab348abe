"""A second routing policy that is asked the same and heeded by nobody: what it would have done is counted."""

from collections.abc import Callable

from headway.core.fleet import FleetView, ReplicaId
from headway.policy.route import RouteEvent, RoutePolicy, RouteRequest, RouteSent


class Shadow:
    """Tries a policy on live calls.

    It is told where calls really went, so it decides each call on the caches and loads that there are, not on those
    that its own choices would have made: what it saves in the long run is more, or less, than the sum of its steps.

    Args:
        policy: the one that is tried.
        seconds: expected time of a call at a replica, as things are.
    """

    def __init__(self, policy: RoutePolicy, seconds: Callable[[RouteRequest, ReplicaId], float]) -> None:
        self._policy = policy
        self._seconds = seconds
        self.name = str(getattr(policy, "name", type(policy).__name__))
        self.same = 0
        """Decisions in which it agreed."""
        self.other = 0
        """Those in which it did not."""
        self.failed = 0
        """Those that it could not make, and events that it could not bear."""
        self.saved = 0.0
        """Seconds by which calls were expected to be answered sooner where it would have sent them."""

    def sent(self, request: RouteRequest, replica: ReplicaId, view: FleetView, now: float) -> str | None:
        """A call was sent to ``replica``: what is to be said of it, where it would have gone elsewhere."""
        decision = self._policy.decide(request, view, now)
        self._policy.observe(RouteSent(replica=replica, task=request.task, at=now, request=request))
        if decision.replica is None or decision.replica.id == replica:
            self.same += 1
            return None
        elsewhere = decision.replica.id
        gain = self._seconds(request, replica) - self._seconds(request, elsewhere)
        self.other += 1
        self.saved += gain
        much = f"{abs(gain):.3f} s {'sooner' if gain > 0 else 'later'}"
        return f"{self.name}, which is tried in the shadow, would have sent it to {elsewhere}, expected {much}."

    def observe(self, event: RouteEvent) -> None:
        """Learn what became of calls."""
        self._policy.observe(event)
