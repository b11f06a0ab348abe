"""Routing in tests: fleets, calls, and what becomes of them."""

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.lengths import Prefix
from headway.policy.route import RouteDone, RoutePolicy, RouteRequest, RouteSent, RouteStarted

A, B, C = ReplicaId("a"), ReplicaId("b"), ReplicaId("c")


def load(name: str, in_flight: int = 0, *, healthy: bool = True, models: tuple[str, ...] = ()) -> ReplicaLoad:
    replica = Replica(id=ReplicaId(name), url=f"http://127.0.0.1:1/{name}/v1", models=models)
    return ReplicaLoad(replica=replica, healthy=healthy, in_flight=in_flight)


def fleet(**in_flight: int) -> FleetView:
    return FleetView(tuple(load(name, count) for name, count in in_flight.items()))


def chain(*links: tuple[int, int]) -> tuple[Prefix, ...]:
    """A prompt of (digest, tokens of the message) links; tokens become those up to there."""
    total, prefixes = 0, list[Prefix]()
    for digest, tokens in links:
        total += tokens
        prefixes.append((digest, total))
    return tuple(prefixes)


def call(
    name: str = "c",
    prompt: tuple[Prefix, ...] = (),
    *,
    session: str = "",
    excluded: tuple[str, ...] = (),
    output: int | None = 10,
    draw: float = 0.0,
) -> RouteRequest:
    return RouteRequest(
        model="m",
        task=TaskId(session),
        session=SessionId(session),
        call=SpanId(name),
        prompt=prompt,
        output_tokens=output,
        excluded=frozenset(ReplicaId(one) for one in excluded),
        stream=True,
        draw=draw,
    )


def sent(policy: RoutePolicy, replica: str, request: RouteRequest, at: float = 0.0) -> None:
    policy.observe(RouteSent(replica=ReplicaId(replica), task=request.task, at=at, request=request))


def started(policy: RoutePolicy, replica: str, name: str, at: float) -> None:
    policy.observe(RouteStarted(replica=ReplicaId(replica), call=SpanId(name), at=at))


def done(
    policy: RoutePolicy, replica: str, name: str, at: float, usage: tuple[int | None, int | None, int | None]
) -> None:
    tokens, cached, output = usage
    policy.observe(
        RouteDone(
            replica=ReplicaId(replica),
            task=TaskId(""),
            failed=False,
            call=SpanId(name),
            at=at,
            input_tokens=tokens,
            cached_tokens=cached,
            output_tokens=output,
        )
    )


def scores(policy: RoutePolicy, request: RouteRequest, view: FleetView, now: float = 0.0) -> dict[str, float]:
    return {candidate.name: candidate.score for candidate in policy.decide(request, view, now).receipt.candidates}


def winner(policy: RoutePolicy, request: RouteRequest, view: FleetView, now: float = 0.0) -> str:
    return policy.decide(request, view, now).receipt.winner
