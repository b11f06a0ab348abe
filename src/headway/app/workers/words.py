"""What the process that looks after the workers and a worker say to each other, by topic."""

from typing import Final

import msgspec
from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.gateway.caches.figures import Report
from headway.gateway.fleet import ReplicaState

BEGIN: Final = "begin"
"""Asked of a worker: serve this (a pickled `headway.app.workers.child.Task`). Answered once it listens."""
FIGURES: Final = "figures"
"""Asked of a worker: its own `Figures`. Asked by a worker: those of all."""
IN_FLIGHT: Final = "in flight"
"""The same for the calls on each replica alone."""
CACHE: Final = "cache"
"""Asked of a worker: how its cache goes, nothing where it has none. Asked by a worker: the answers of all."""
DROP: Final = "drop"
"""Asked of a worker: drop these kept answers. Asked by a worker: have all others do so. Answered with their counts."""
CHANGE: Final = "change"
"""Asked of a worker: serve this from now on (a pickled `Service`)."""
RELOAD: Final = "reload"
"""Asked by a worker: read the configuration again. Answered with `headway.app.reloading.Reloaded`."""
FLEET: Final = "fleet"
"""Told to workers: the fleet is this now."""
DOWN: Final = "down"
"""Told by a worker: this replica cannot be reached."""
BUS: Final = "bus"
"""Told either way: news for the other workers' buses."""
DRAIN: Final = "drain"
"""Told to workers: let no more calls in, and end when those under way have, or after so many seconds."""
AT_ONCE: Final = "at once"
"""Told to workers: do not wait for them."""


class News(Struct, frozen=True, array_like=True):
    """Of a bus."""

    topic: str
    payload: bytes


class Down(Struct, frozen=True, array_like=True):
    """A replica that a worker could not reach."""

    replica: ReplicaId
    reason: str


InFlight = dict[ReplicaId, int]
"""Calls on each replica."""

encode: Final = msgspec.msgpack.encode
read_news: Final = msgspec.msgpack.Decoder(News).decode
read_down: Final = msgspec.msgpack.Decoder(Down).decode
read_fleet: Final = msgspec.msgpack.Decoder(tuple[ReplicaState, ...]).decode
read_in_flight: Final = msgspec.msgpack.Decoder(InFlight).decode
read_cache: Final = msgspec.msgpack.Decoder(Report).decode
read_caches: Final = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode
read_count: Final = msgspec.msgpack.Decoder(int).decode
read_counts: Final = msgspec.msgpack.Decoder(tuple[int, ...]).decode
read_seconds: Final = msgspec.msgpack.Decoder(float).decode
