"""Answers that are kept, bounded in bytes; when room is needed, those go first that save least for each byte."""

import sys
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from msgspec import Struct

from headway.core.errors import BadInputError
from headway.core.money import MicroUsd
from headway.policy.cache.keys import CacheKey
from headway.wire.openai import Answer

Freshness = Literal["fresh", "stale"]
"""``stale``: it may be given while it is asked for anew."""

ENTRY_OVERHEAD: Final = 1024
"""Bytes that an entry takes beside its own: structures, tags and places in two indexes; 920 to 1,050 as traced."""
_SLACK: Final = 2
"""The heap holds a stale item for each change of an entry; past this many times the entries it is made anew."""


class Kept(Struct, frozen=True, kw_only=True):
    """One answer, and what it is worth."""

    body: bytes
    media: bytes
    """Its content type."""
    answer: Answer
    """What the body says, for those who must know it whenever it is given."""
    made: float
    """When it was answered; epoch seconds, as all times here."""
    fresh_until: float
    stale_until: float
    """From ``fresh_until`` up to here it may be given while it is asked for anew."""
    seconds: float
    """What it took to make, and so saves each time it is given."""
    cost: MicroUsd | None
    """What it cost; ``None``: unknown."""
    tags: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Bytes of memory."""
        answer = self.answer
        said = sys.getsizeof(answer.content) + sum([sys.getsizeof(call.arguments) for call in answer.tool_calls])
        return len(self.body) + len(self.media) + said + ENTRY_OVERHEAD


class Hit(Struct, frozen=True):
    """An answer that may be given."""

    kept: Kept
    freshness: Freshness


class CacheFigures(Struct, kw_only=True):
    """What a cache has done since it was made."""

    hits: int = 0
    stale_hits: int = 0
    """Of the hits, those past their freshness."""
    misses: int = 0
    expired: int = 0
    """Of the misses, those for which there was an answer that had become too old."""
    evicted: int = 0
    """Answers that went to make room."""
    refused: int = 0
    """Answers too large to be kept."""
    invalidated: int = 0
    bytes_served: int = 0
    seconds_saved: float = 0.0
    cost_saved: int = 0
    """Micro-USD, of the hits whose cost is known."""
    cost_unknown: int = 0
    """Hits whose cost is not."""


class _Slot(Struct):
    kept: Kept
    size: int
    given: int
    """How often it was asked for, the first time included."""
    priority: float
    ticket: int


class AnswerCache:
    """Greedy-Dual-Size-Frequency (Cherkasova 1998, HPL-98-69R1), the value of an answer being the seconds it saves.

    An entry's priority is ``L + times asked x seconds / bytes``; the lowest goes first and leaves its priority as the
    new ``L``, so that what was dear once and is asked for no more ages, too.

    Args:
        limit: bytes of all entries together.

    Raises:
        BadInputError: the limit is not positive.
    """

    def __init__(self, limit: int) -> None:
        if limit <= 0:
            raise BadInputError(f"A cache of {limit} bytes holds nothing.", fix="Give it room, or leave it out.")
        self.limit = limit
        self.figures = CacheFigures()
        self.size = 0
        """Bytes now."""
        self.worth = 0.0
        """Seconds that what is kept now has saved so far."""
        self._slots: dict[CacheKey, _Slot] = {}
        self._tagged: dict[frozenset[str], set[CacheKey]] = {}
        """By all of their tags together: most answers have the same."""
        self._heap: list[tuple[float, int, CacheKey]] = []
        self._floor = 0.0
        self._tickets = 0

    def __len__(self) -> int:
        """Entries now, those included that are too old and were not asked for since."""
        return len(self._slots)

    def entries(self) -> tuple[Kept, ...]:
        """Everything that is kept now, the too old included."""
        return tuple(slot.kept for slot in self._slots.values())

    def get(self, key: CacheKey, now: float) -> Hit | None:
        """The answer to give at ``now`` (epoch seconds), if there is one."""
        figures, slot = self.figures, self._slots.get(key)
        if slot is None:
            figures.misses += 1
            return None
        kept = slot.kept
        if now >= kept.stale_until:
            self._drop(key)
            figures.misses += 1
            figures.expired += 1
            return None
        fresh = now < kept.fresh_until
        figures.hits += 1
        figures.stale_hits += not fresh
        figures.bytes_served += len(kept.body)
        figures.seconds_saved += kept.seconds
        if kept.cost is None:
            figures.cost_unknown += 1
        else:
            figures.cost_saved += kept.cost
        slot.given += 1
        self.worth += kept.seconds
        self._rank(key, slot)
        return Hit(kept, "fresh" if fresh else "stale")

    def peek(self, key: CacheKey, now: float) -> Kept | None:
        """A fresh answer, without its counting as given."""
        slot = self._slots.get(key)
        return None if slot is None or now >= slot.kept.fresh_until else slot.kept

    def put(self, key: CacheKey, kept: Kept) -> bool:
        """Keep an answer in place of any other under its key; False: it is larger than the whole cache may be."""
        before = self._slots.get(key)
        given = 1 if before is None else before.given
        if before is not None:
            self._drop(key)
        size = kept.size
        if size > self.limit:
            self.figures.refused += 1
            return False
        while self.size + size > self.limit:
            self._evict()
        slot = _Slot(kept, size, given, 0.0, 0)
        self._slots[key] = slot
        self.size += size
        self.worth += (given - 1) * kept.seconds
        alike = self._tagged.get(kept.tags)
        if alike is None:
            alike = self._tagged[kept.tags] = set()
        alike.add(key)
        self._rank(key, slot)
        return True

    def invalidate(self, tags: Iterable[str]) -> int:
        """Forget every answer that has one of these tags; how many there were."""
        wanted = frozenset(tags)
        keys = set[CacheKey]().union(*(keys for its, keys in self._tagged.items() if not wanted.isdisjoint(its)))
        for key in keys:
            self._drop(key)
        self.figures.invalidated += len(keys)
        return len(keys)

    def _rank(self, key: CacheKey, slot: _Slot) -> None:
        self._tickets += 1
        slot.ticket = self._tickets
        slot.priority = self._floor + slot.given * slot.kept.seconds / slot.size
        if len(self._heap) > _SLACK * len(self._slots):
            self._heap = [(one.priority, one.ticket, its) for its, one in self._slots.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (slot.priority, slot.ticket, key))

    def _evict(self) -> None:
        while True:
            priority, ticket, key = heappop(self._heap)
            slot = self._slots.get(key)
            if slot is not None and slot.ticket == ticket:
                self._floor = priority
                self._drop(key)
                self.figures.evicted += 1
                return

    def _drop(self, key: CacheKey) -> None:
        slot = self._slots.pop(key)
        kept = slot.kept
        self.size -= slot.size
        self.worth -= (slot.given - 1) * kept.seconds
        alike = self._tagged[kept.tags]
        alike.discard(key)
        if not alike:
            del self._tagged[kept.tags]
