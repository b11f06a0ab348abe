"""Which replica's cache holds the beginning of which prompt: an approximation, kept from what was sent where.

Each replica is taken for a cache that forgets the least recently used chain from its end. How much it holds is learnt:
a call that was expected to be cached and was not shows that what came between no longer fits beside it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.policy.lengths import Prefix

MAX_BYTES: Final = 32 * 1024 * 1024
HELD_BYTES: Final = 340
"""Memory of one prefix at one replica, at most: measured with tracemalloc, see the tests."""
_BLOCK: Final = 64
"""Tokens that an engine may compute again for a prompt that it holds: caches keep whole blocks."""
_SLACK: Final = 0.1
"""Share of the expected tokens that may be missing before a call counts as not cached."""
_GROWTH: Final = 1.02
"""A hit while full shows that there may be more room."""
_FULL: Final = 0.9
_NOTHING: Final[Mapping[ReplicaId, int]] = MappingProxyType({})


class Holding(Struct, frozen=True, gc=False):
    """What a replica was thought to hold of a prompt when the prompt was sent there."""

    tokens: int
    span: int
    """Tokens of capacity that it takes to hold them still: theirs, and those computed since they were used."""


class _Held(Struct, gc=False):
    own: int
    parent: int | None
    children: int = 0


class _Shelf:
    """One replica's cache."""

    __slots__ = ("bit", "capacity", "clock", "held", "tails", "tokens")

    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.held: dict[int, _Held] = {}
        self.tails: OrderedDict[int, int] = OrderedDict()
        """Ends of chains, least recently used first, with the clock of their last use."""
        self.tokens = 0
        self.clock = 0
        """Tokens that were ever computed here."""
        self.capacity: float | None = None


class Prefixes:
    """The index of all replicas, in at most ``max_bytes``; the oldest chain of the fullest replica goes first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._masks: dict[int, int] = {}
        """A bit for each replica that holds the prefix. Who holds a prefix holds all shorter ones of its chain."""
        self._shelves: dict[ReplicaId, _Shelf] = {}
        self._names: dict[int, ReplicaId] = {}
        self._count = 0

    @property
    def bytes(self) -> int:
        """Memory accounted for."""
        return self._count * HELD_BYTES

    def capacity(self, replica: ReplicaId) -> float | None:
        """Tokens that the replica's cache was seen to hold; ``None``: it never lost anything that was missed."""
        shelf = self._shelves.get(replica)
        return None if shelf is None else shelf.capacity

    def match(self, prompt: tuple[Prefix, ...]) -> Mapping[ReplicaId, int]:
        """Tokens of ``prompt`` that each replica holds; one that is not named holds none.

        Takes a number of look-ups that grows with the logarithm of the prompt's messages, as holding is closed under
        shortening.
        """
        masks = self._masks
        if not prompt or prompt[0][0] not in masks:
            return _NOTHING
        high = len(prompt)
        low, step = high - 1, 1
        while low > 0 and prompt[low][0] not in masks:
            high, low, step = low, low - step, step * 2
        low = max(low, 0)
        while high - low > 1:
            middle = (low + high) // 2
            if prompt[middle][0] in masks:
                low = middle
            else:
                high = middle
        found: dict[ReplicaId, int] = {}
        fresh = masks[prompt[low][0]]
        rest = masks[prompt[0][0]]
        while True:
            tokens, rest = prompt[low][1], rest & ~fresh
            while fresh:
                bit = fresh & -fresh
                found[self._names[bit]] = tokens
                fresh ^= bit
            if not rest:
                return found
            low = self._deepest(prompt, rest, low)
            fresh = masks[prompt[low][0]] & rest

    def insert(self, replica: ReplicaId, prompt: tuple[Prefix, ...]) -> Holding:
        """``prompt`` was sent to ``replica``, which now holds all of it; what it was thought to hold before."""
        shelf = self._shelves.get(replica) or self._add(replica)
        held = shelf.held
        start = len(prompt)
        while start and prompt[start - 1][0] not in held:
            start -= 1
        parent, before = prompt[start - 1] if start else (None, 0)
        used = shelf.tails.pop(parent, None) if parent is not None else None
        span = before if used is None else before + shelf.clock - used
        for digest, tokens in prompt[start:]:
            if digest in held:
                continue
            own = max(0, tokens - before)
            held[digest] = _Held(own, parent)
            if parent is not None:
                held[parent].children += 1
            self._masks[digest] = self._masks.get(digest, 0) | shelf.bit
            shelf.tokens += own
            shelf.clock += own
            self._count += 1
            parent, before = digest, before + own
        if parent is not None and not held[parent].children:
            shelf.tails[parent] = shelf.clock
        self._fit(shelf)
        return Holding(prompt[start - 1][1] if start else 0, span)

    def reported(self, replica: ReplicaId, holding: Holding, cached: int) -> None:
        """The engine says that ``cached`` tokens of a prompt came from its cache, of which ``holding`` was expected."""
        shelf = self._shelves.get(replica)
        if shelf is None or not holding.tokens:
            return
        if cached < holding.tokens - max(_BLOCK, _SLACK * holding.tokens):
            known = shelf.capacity
            shelf.capacity = float(holding.span) if known is None else min(known, (known + holding.span) / 2)
            self._fit(shelf)
        elif shelf.capacity is not None and shelf.tokens >= _FULL * shelf.capacity:
            shelf.capacity = max(shelf.capacity * _GROWTH, holding.span)

    def victims(self, replica: ReplicaId, tokens: int) -> list[tuple[int, int]]:
        """Ends of chains that must go to make room for ``tokens`` more, oldest first, each with its own tokens."""
        shelf = self._shelves.get(replica)
        if shelf is None or shelf.capacity is None:
            return []
        over, going = shelf.tokens + tokens - shelf.capacity, list[tuple[int, int]]()
        for tail in shelf.tails:
            if over <= 0:
                break
            own = shelf.held[tail].own
            going.append((tail, own))
            over -= own
        return going

    def forget(self, replica: ReplicaId) -> None:
        """``replica`` holds nothing any more, and what it can hold is unknown."""
        shelf = self._shelves.pop(replica, None)
        if shelf is None:
            return
        del self._names[shelf.bit]
        for digest in shelf.held:
            self._unmark(digest, shelf.bit)
        self._count -= len(shelf.held)

    def _add(self, replica: ReplicaId) -> _Shelf:
        bit = 1
        while bit in self._names:
            bit <<= 1
        self._names[bit] = replica
        shelf = self._shelves[replica] = _Shelf(bit)
        return shelf

    def _deepest(self, prompt: tuple[Prefix, ...], wanted: int, high: int) -> int:
        """The longest prefix below ``high`` that one of ``wanted`` holds: often just what all prompts begin with."""
        low, step, masks = 0, 1, self._masks
        while low + step < high and masks[prompt[low + step][0]] & wanted:
            low, step = low + step, step * 2
        high = min(high, low + step)
        while high - low > 1:
            middle = (low + high) // 2
            if masks[prompt[middle][0]] & wanted:
                low = middle
            else:
                high = middle
        return low

    def _fit(self, shelf: _Shelf) -> None:
        capacity = shelf.capacity
        while capacity is not None and shelf.tokens > capacity and len(shelf.tails) > 1:
            self._evict(shelf)
        while self._count * HELD_BYTES > self._max:
            self._evict(max(self._shelves.values(), key=_size))

    def _evict(self, shelf: _Shelf) -> None:
        """Take the last link off the chain that was used longest ago."""
        digest, used = shelf.tails.popitem(last=False)
        link = shelf.held.pop(digest)
        shelf.tokens -= link.own
        self._count -= 1
        self._unmark(digest, shelf.bit)
        if link.parent is not None:
            parent = shelf.held[link.parent]
            parent.children -= 1
            if not parent.children:
                shelf.tails[link.parent] = used
                shelf.tails.move_to_end(link.parent, last=False)

    def _unmark(self, digest: int, bit: int) -> None:
        left = self._masks[digest] & ~bit
        if left:
            self._masks[digest] = left
        else:
            del self._masks[digest]


def _size(shelf: _Shelf) -> int:
    return len(shelf.held)
