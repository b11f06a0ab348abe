"""Prefix single flight at work: of calls that begin alike one goes first, the rest once it begins to answer."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from msgspec import Struct, structs

from headway.core.clock import Clock
from headway.core.fleet import Replica, ReplicaId
from headway.core.task import SpanId
from headway.gateway.exposition import family
from headway.gateway.journal import CallRecord
from headway.policy.leader import LEAST, LONGEST, Follow, SingleFlight
from headway.policy.lengths import Prefix

_WARM_SECONDS: Final = 300.0
"""For how long a prefix that was computed counts as cached."""
_WARM: Final = 20_000
"""Prefixes that are remembered so."""


class LeadRules(Struct, frozen=True, kw_only=True):
    """For which calls, and how long."""

    tokens: int = LEAST
    """Tokens of a common beginning below which nobody waits."""
    longest: float = LONGEST
    """Seconds that a call waits at most."""


class Follower(Protocol):
    """A call that waits for another."""

    def lead(self, replica: Replica, now: float, *, wait: bool) -> None:
        """It is to go to ``replica``; ``wait``: unless there is another to wait for."""
        ...

    def met(self, error: Exception) -> None:
        """A fault of our own."""
        ...


class _Held(Struct, eq=False):
    follower: Follower
    record: CallRecord
    replica: Replica
    leader: SpanId
    shared: int
    since: float
    timer: asyncio.TimerHandle


class Leading:
    """Who goes first, at each replica; used from one event loop only.

    Args:
        rules: for which calls, and how long.
        prompts: tells the prompt of a call that was identified just now.
        clock: for times.
    """

    def __init__(self, rules: LeadRules, prompts: Callable[[SpanId], tuple[Prefix, ...]], clock: Clock) -> None:
        self._rules = rules
        self._prompts = prompts
        self._clock = clock
        self._flights = SingleFlight(rules.tokens, rules.longest)
        self._held: dict[SpanId, _Held] = {}
        self._warm: OrderedDict[tuple[ReplicaId, int], float] = OrderedDict()
        self.followed = 0
        self.overdue = 0

    @property
    def waiting(self) -> int:
        """Calls that are held now."""
        return len(self._held)

    def holds(self, follower: Follower, record: CallRecord, replica: Replica, now: float) -> bool:
        """Whether a call on its way to ``replica`` waits for another; it is told when it does no more.

        Of llama.cpp each slot has a cache of its own, so there nobody gains by waiting.
        """
        if replica.engine == "llama.cpp":
            return False
        prompt = self._prompts(record.span)
        if not prompt or prompt[-1][1] < self._rules.tokens:
            return False
        held = max((tokens for digest, tokens in prompt if self._is_warm(replica.id, digest, now)), default=0)
        verdict = self._flights.decide(record.span, replica.id, prompt, {replica.id: held}, now)
        if not isinstance(verdict, Follow):
            return False
        timer = asyncio.get_running_loop().call_later(self._rules.longest, self._late, record.span)
        self._held[record.span] = _Held(follower, record, replica, verdict.leader, verdict.shared, now, timer)
        return True

    def begun(self, record: CallRecord, replica: ReplicaId, now: float) -> None:
        """Its answer begins, so its prompt is in the replica's cache."""
        for digest, tokens in self._prompts(record.span):
            if tokens >= self._rules.tokens:
                self._warm.pop((replica, digest), None)
                self._warm[replica, digest] = now
        while len(self._warm) > _WARM:
            self._warm.popitem(last=False)
        self.ended(record)

    def ended(self, record: CallRecord) -> None:
        """It has begun to answer, or never will: who follows it goes on; it follows nobody itself any more."""
        own = self._held.pop(record.span, None)
        if own is not None:
            own.timer.cancel()
            self._flights.left(record.span, own.leader)
        for call in self._flights.released(record.span):
            self._let_go(call)

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_calls_led_total",
            "counter",
            "Calls that waited for another to compute a common prompt, by how that ended.",
            [({"outcome": "followed"}, self.followed), ({"outcome": "overdue"}, self.overdue)],
        )

    def _is_warm(self, replica: ReplicaId, digest: int, now: float) -> bool:
        since = self._warm.get((replica, digest))
        return since is not None and now - since < _WARM_SECONDS

    def _late(self, call: SpanId) -> None:
        held = self._held.get(call)
        if held is not None:
            self._flights.left(call, held.leader)
            self._let_go(call, overdue=True)

    def _let_go(self, call: SpanId, *, overdue: bool = False) -> None:
        held = self._held.pop(call, None)
        if held is None:
            return
        held.timer.cancel()
        self.overdue += overdue
        self.followed += not overdue
        now = self._clock.now()
        waited = now - held.since
        held.record.queued += waited
        receipt = held.record.receipt
        if receipt is not None:
            note = f"It waited {waited:.3f} s for a call that begins with the same {held.shared:,} tokens."
            held.record.receipt = structs.replace(receipt, notes=(*receipt.notes, note))
        try:
            held.follower.lead(held.replica, now, wait=not overdue)
        except Exception as error:  # noqa: BLE001 - it is this call's fault and no other's
            held.follower.met(error)
