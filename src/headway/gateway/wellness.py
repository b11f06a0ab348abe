"""GET /health: whether calls can be served, and what stands in their way."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from headway.core.fleet import ReplicaId
from headway.gateway.fleet import LiveFleet
from headway.gateway.later import Answer
from headway.gateway.wiring import Passes

_OK: Final = 200
_UNAVAILABLE: Final = 503


def wellness(fleet: LiveFleet, passes: Passes, in_flight: Mapping[ReplicaId, int] | None, now: float) -> Answer:
    """How the gateway fares; where callers need keys, no more than a word.

    Args:
        fleet: the replicas.
        passes: what calls pass.
        in_flight: calls on each replica by all workers; ``None``: there is one, whose fleet counts them.
        now: epoch seconds.
    """
    replicas = fleet.health()
    healthy = sum(replica.healthy for replica in replicas)
    word = "ok" if healthy == len(replicas) and healthy else "degraded" if healthy else "down"
    body: dict[str, Any] = {"status": word}
    if passes.door is None:
        body["replicas"] = rows = [structs.asdict(replica) for replica in replicas]
        if passes.breakers is not None:
            states = {one.replica: one.state for one in passes.breakers.states(now)}
            for row in rows:
                row["breaker"] = states.get(row["id"], "closed")
        if in_flight is not None:
            for row in rows:
                row["in_flight"] = in_flight.get(row["id"], 0)
        if passes.whereabouts is not None:
            body["whereabouts"] = passes.whereabouts.trouble or "known of all workers"
    return Answer(_OK if healthy else _UNAVAILABLE, msgspec.json.encode(body))
