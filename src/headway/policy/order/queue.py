"""A queue of calls: lanes share it, tenants share each lane, and an order sorts each tenant's calls."""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Final

from headway.core.task import SpanId
from headway.policy.order.shares import Shares
from headway.policy.order.waiting import LEVEL, Lane, Order, Waiting

LANES: Final[Mapping[str, float]] = MappingProxyType({"interactive": 19.0, "batch": 1.0})
"""Weights of the lanes: as long as interactive calls need less than 95 % of the fleet they are never behind batch, and
batch never gets less than 5 %."""
_EQUAL: Final[Mapping[str, float]] = MappingProxyType({})
_Entry = tuple[float, int, Waiting]


class Fairness:
    """Shares of lanes and of tenants within each, common to all queues of a fleet."""

    def __init__(self, tenants: Mapping[str, float] = _EQUAL, lanes: Mapping[str, float] = LANES) -> None:
        self.lanes = Shares(lanes)
        self.tenants: dict[Lane, Shares] = {"interactive": Shares(tenants), "batch": Shares(tenants)}

    def take(self, waiting: Waiting, tokens: float) -> None:
        """A call is sent that will take about ``tokens``."""
        self.lanes.take(waiting.lane, tokens)
        self.tenants[waiting.lane].take(waiting.tenant, tokens)

    def correct(self, waiting: Waiting, tokens: float) -> None:
        """It took that many more, or fewer."""
        self.lanes.correct(waiting.lane, tokens)
        self.tenants[waiting.lane].correct(waiting.tenant, tokens)


class Queue:
    """Calls that wait for the same thing."""

    def __init__(self, order: Order, fairness: Fairness) -> None:
        self._order = order
        self._fairness = fairness
        self._lanes: dict[Lane, dict[str, list[_Entry]]] = {"interactive": {}, "batch": {}}
        self._live: dict[SpanId, Waiting] = {}
        self._number = 0
        self._counts: dict[Lane, int] = {"interactive": 0, "batch": 0}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[Waiting]:
        """In no order that means anything."""
        return iter(self._live.values())

    def count(self, lane: Lane) -> int:
        """Calls of ``lane`` that wait."""
        return self._counts[lane]

    def push(self, waiting: Waiting) -> None:
        """Let a call wait."""
        self._number += 1
        heap = self._lanes[waiting.lane].setdefault(waiting.tenant, [])
        heappush(heap, (self._key(waiting), self._number, waiting))
        self._live[waiting.request.call] = waiting
        self._counts[waiting.lane] += 1

    def remove(self, call: SpanId) -> Waiting | None:
        """Take a call out of turn; ``None`` if it does not wait here."""
        waiting = self._live.pop(call, None)
        if waiting is not None:
            self._counts[waiting.lane] -= 1
            heap = self._lanes[waiting.lane][waiting.tenant]
            if len(heap) > 2 * len(self._live) + 8:
                heap[:] = [entry for entry in heap if self._live.get(entry[2].request.call) is entry[2]]
                heapify(heap)
        return waiting

    def first(self, lanes: tuple[Lane, ...] = ("interactive", "batch")) -> Waiting | None:
        """Whose turn it is among ``lanes``; it goes on waiting."""
        asking: list[Lane] = [lane for lane in lanes if self._tenants(lane)]
        if not asking:
            return None
        lane = asking[0]
        if len(asking) > 1 and self._fairness.lanes.start(asking[1]) < self._fairness.lanes.start(lane):
            lane = asking[1]
        tenants = self._lanes[lane]
        tenant = min(tenants, key=self._fairness.tenants[lane].start)
        return tenants[tenant][0][2]

    def after(self, first: Waiting, most: int) -> list[Waiting]:
        """Up to ``most`` others of its tenant and lane that come next, roughly in order."""
        heap = self._lanes[first.lane].get(first.tenant, [])
        live = [entry[2] for entry in sorted(heap[: 2 * most + 2]) if self._alive(entry[2])]
        return [waiting for waiting in live if waiting is not first][:most]

    def _tenants(self, lane: Lane) -> bool:
        """Bring the first call of every tenant to the top; whether anybody waits."""
        tenants = self._lanes[lane]
        for tenant in [tenant for tenant, heap in tenants.items() if not self._settle(heap)]:
            del tenants[tenant]
        return bool(tenants)

    def _settle(self, heap: list[_Entry]) -> bool:
        """Drop what waits no more; a key may have grown since it was pushed, then it goes back down."""
        while heap:
            key, number, waiting = heap[0]
            if not self._alive(waiting):
                heappop(heap)
                continue
            now = self._key(waiting)
            if now <= key:
                return True
            heappop(heap)
            heappush(heap, (now, number, waiting))
        return False

    def _alive(self, waiting: Waiting) -> bool:
        return self._live.get(waiting.request.call) is waiting

    def _key(self, waiting: Waiting) -> float:
        return self._order.key(waiting) - LEVEL * waiting.priority
