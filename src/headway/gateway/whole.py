"""All workers of one gateway, as one of them asks for them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from headway.core.fleet import ReplicaId
from headway.gateway.caches.figures import Report


class Whole(Protocol):
    """All of them together, unless it says otherwise."""

    async def metrics(self) -> bytes:
        """The page of metrics."""
        ...

    async def in_flight(self) -> Mapping[ReplicaId, int]:
        """Calls on each replica."""
        ...

    async def caches(self) -> Sequence[Report]:
        """How the cache of each worker that keeps answers goes."""
        ...

    async def dropped(self, message: bytes) -> Sequence[int]:
        """How many answers each of the others kept that it has dropped now; see `dropped_as_told`."""
        ...
