"""Prefix single flight: where many calls share a prefix that nobody has computed, one goes first.

A fan-out sends its branches at once, and each would compute the common prefix anew: engines share what was computed,
not what is being computed. So the first leads, and the rest are released at its first token, when the prefix is cached.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from headway.core.fleet import ReplicaId
from headway.core.task import SpanId
from headway.policy.lengths import Prefix

LEAST: Final = 512
"""Tokens of a shared prefix below which computing it again is quicker than waiting for it."""
LONGEST: Final = 30.0
"""Seconds after which followers wait no longer, whatever became of their leader."""


class Lead(Struct, frozen=True):
    """Send it now; it computes what others may be waiting for."""


class Follow(Struct, frozen=True):
    """Hold it until ``leader``'s first token, then send it to the same replica."""

    leader: SpanId
    shared: int
    """Tokens of the prefix that they have in common."""


class _Flight(Struct, gc=False):
    call: SpanId
    replica: ReplicaId
    since: float
    digests: tuple[int, ...]
    followers: list[SpanId] = []


class SingleFlight:
    """Who leads and who follows, at each replica.

    Args:
        least: see `LEAST`.
        longest: see `LONGEST`.
    """

    def __init__(self, least: int = LEAST, longest: float = LONGEST) -> None:
        self._least = least
        self._longest = longest
        self._leaders: dict[tuple[ReplicaId, int], _Flight] = {}
        self._flights: dict[SpanId, _Flight] = {}

    def decide(
        self, call: SpanId, replica: ReplicaId, prompt: tuple[Prefix, ...], cached: Mapping[ReplicaId, int], now: float
    ) -> Lead | Follow:
        """Whether ``call``, on its way to ``replica``, goes first or waits.

        Args:
            call: its id.
            replica: where routing sends it.
            prompt: its prefixes, shortest first.
            cached: tokens of it that each replica holds.
            now: epoch seconds.
        """
        held = cached.get(replica, 0)
        for digest, tokens in reversed(prompt):
            if tokens - held < self._least:
                break
            leader = self._leaders.get((replica, digest))
            if leader is not None and now - leader.since < self._longest:
                leader.followers.append(call)
                return Follow(leader.call, tokens)
        digests = tuple([digest for digest, tokens in prompt if tokens - held >= self._least])
        if digests:
            flight = self._flights[call] = _Flight(call, replica, now, digests, [])
            for digest in digests:
                self._leaders[replica, digest] = flight
        return Lead()

    def released(self, call: SpanId) -> tuple[SpanId, ...]:
        """``call`` had its first token, failed or left: those who followed it, to be sent now (or decided anew)."""
        flight = self._flights.pop(call, None)
        if flight is None:
            return ()
        for digest in flight.digests:
            if self._leaders.get((flight.replica, digest)) is flight:
                del self._leaders[flight.replica, digest]
        return tuple(flight.followers)

    def followers(self, call: SpanId) -> tuple[SpanId, ...]:
        """Those who wait for ``call``, which goes on leading."""
        flight = self._flights.get(call)
        return () if flight is None else tuple(flight.followers)

    def left(self, call: SpanId, leader: SpanId) -> None:
        """A follower is gone."""
        flight = self._flights.get(leader)
        if flight is not None and call in flight.followers:
            flight.followers.remove(call)

    def overdue(self, now: float) -> tuple[SpanId, ...]:
        """Leaders that have kept others waiting for too long: `released` frees their followers."""
        return tuple(
            [call for call, flight in self._flights.items() if flight.followers and now - flight.since >= self._longest]
        )
