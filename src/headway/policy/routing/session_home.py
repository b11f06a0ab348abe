"""Session home: a session stays where it began."""

from headway.core.fleet import FleetView
from headway.core.span import Candidate
from headway.policy.route import RouteDecision, RouteEvent, RouteRequest
from headway.policy.routing.candidates import able, chosen, none
from headway.policy.routing.failures import Failures
from headway.policy.routing.homes import Homes, session_of


class SessionHome:
    """The replica that served the session last, however busy; a new session goes to the fewest calls in flight."""

    name = "session-home"
    wants_all = True

    def __init__(self) -> None:
        self._homes = Homes()
        self._failures = Failures()

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The home, while it can take the call."""
        loads, notes = self._failures.spare(request.task, able(request, view))
        if not loads:
            return none(self.name, request, view)
        scores = tuple([Candidate(load.replica.id, load.in_flight) for load in loads])
        home = self._homes.get(session_of(request), now)
        for load in loads:
            if load.replica.id == home:
                return chosen(self.name, load, "served the session last", scores, notes)
        best = min(loads, key=lambda load: load.in_flight)
        reason = "a new session, fewest in flight" if home is None else "the home cannot take it, fewest in flight"
        return chosen(self.name, best, reason, scores, notes)

    def observe(self, event: RouteEvent) -> None:
        """Remember where sessions are served."""
        self._failures.observe(event)
        self._homes.observe(event)
