"""Prefix single flight at work: of calls that begin alike one goes first, the rest once it begins to answer."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, structs

from headway.core.clock import Clock
from headway.core.errors import HeadwayError
from headway.core.fleet import Replica, ReplicaId
from headway.core.task import SpanId
from headway.gateway.exposition import family
from headway.gateway.journal import CallRecord
from headway.gateway.priming import Priming
from headway.policy.leader import LEAST, LONGEST, Follow, SingleFlight
from headway.policy.lengths import Prefix

_WARM_SECONDS: Final = 300.0
"""For how long a prefix that was computed counts as cached."""
_WARM: Final = 20_000
"""Prefixes that are remembered so."""
_TELLING: Final = 64
"""Tokens of a prompt, from which on the time to compute it says how fast an engine computes."""


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


class _Answering(Struct, eq=False):
    """A call that leads at an engine whose slots are primed when it has ended."""

    replica: Replica
    timer: asyncio.TimerHandle | None = None
    """Until its followers have waited for as long as priming would save them."""


class Leading:
    """Who goes first, at each replica; used from one event loop only.

    Of llama.cpp each slot has a cache of its own. There followers wait until the first has ended, and then the slots
    are primed; but no longer than it would take them to compute the common beginning themselves.

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
        self._answering: dict[SpanId, _Answering] = {}
        self._pace: dict[ReplicaId, float] = {}
        """Seconds for a token of a prompt, as engines say."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.priming: Priming | None = None
        """Primes slots; ``None``: at engines whose slots share nothing nobody waits."""
        self.followed = 0
        self.overdue = 0

    @property
    def waiting(self) -> int:
        """Calls that are held now."""
        return len(self._held)

    def holds(self, follower: Follower, record: CallRecord, replica: Replica, now: float) -> bool:
        """Whether a call on its way to ``replica`` waits for another; it is told when it does no more."""
        if replica.engine == "llama.cpp" and (self.priming is None or not self.priming.able(replica)):
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
        self._bound(verdict.leader)
        return True

    def begun(self, record: CallRecord, replica: Replica, now: float) -> None:
        """Its answer begins, so its prompt is in the replica's cache."""
        if replica.engine == "llama.cpp":
            if self.priming is not None and self.priming.able(replica):
                self._answering[record.span] = _Answering(replica)
                self._bound(record.span)
            return
        self._note_warm(self._prompts(record.span), replica.id, now)
        self.ended(record)

    def ended(self, record: CallRecord) -> None:
        """It has begun to answer, or never will: who follows it goes on; it follows nobody itself any more."""
        own = self._held.pop(record.span, None)
        if own is not None:
            own.timer.cancel()
            self._flights.left(record.span, own.leader)
        answering = self._answering.pop(record.span, None)
        if answering is not None:
            if answering.timer is not None:
                answering.timer.cancel()
            self._learn(record, answering.replica)
            if record.error is None and self.priming is not None and self._flights.followers(record.span):
                task = asyncio.get_running_loop().create_task(self._prime(self.priming, record, answering.replica))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
        self._release(record.span)

    async def close(self) -> None:
        """Prime no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_calls_led_total",
            "counter",
            "Calls that waited for another to compute a common prompt, by how that ended.",
            [({"outcome": "followed"}, self.followed), ({"outcome": "overdue"}, self.overdue)],
        )
        if self.priming is not None:
            yield from family(
                "headway_slots_primed_total",
                "counter",
                "Slots of llama.cpp into which was read what another had computed.",
                [({}, self.priming.primed)],
            )

    def _bound(self, leader: SpanId) -> None:
        """See to it that the followers of one that answers wait no longer than it is worth."""
        answering, followers = self._answering.get(leader), self._flights.followers(leader)
        if answering is None or answering.timer is not None or not followers:
            return
        pace = self._pace.get(answering.replica.id)
        if pace is not None:
            seconds = len(followers) * pace * max(self._held[call].shared for call in followers)
            answering.timer = asyncio.get_running_loop().call_later(
                seconds, partial(self._release, leader, overdue=True)
            )

    def _learn(self, record: CallRecord, replica: Replica) -> None:
        told = None if record.answer is None else record.answer.engine
        if told is not None and told.prefill_tokens >= _TELLING:
            self._pace[replica.id] = told.prefill_seconds / told.prefill_tokens

    async def _prime(self, priming: Priming, record: CallRecord, replica: Replica) -> None:
        """Copy what a leader has computed for those who follow it; one of them finds the leader's own slot."""
        usage = None if record.answer is None else record.answer.usage
        tokens = None
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            tokens = usage.input_tokens + usage.output_tokens
        wanted, primed = len(self._flights.followers(record.span)) - 1, 0
        try:
            primed = await priming.spread(replica, tokens, wanted) if wanted else 0
        except HeadwayError:
            pass  # they compute it themselves
        finally:
            if primed:
                self._note_warm(self._prompts(record.span), replica.id, self._clock.now())
            self._release(record.span, overdue=primed < min(wanted, 1), again=False)

    def _note_warm(self, prompt: tuple[Prefix, ...], replica: ReplicaId, now: float) -> None:
        for digest, tokens in prompt:
            if tokens >= self._rules.tokens:
                self._warm.pop((replica, digest), None)
                self._warm[replica, digest] = now
        while len(self._warm) > _WARM:
            self._warm.popitem(last=False)

    def _release(self, leader: SpanId, *, overdue: bool = False, again: bool = True) -> None:
        """``overdue``: they have waited in vain; ``again``: they may wait for one of themselves."""
        for call in self._flights.released(leader):
            self._let_go(call, overdue=overdue, again=again)

    def _is_warm(self, replica: ReplicaId, digest: int, now: float) -> bool:
        since = self._warm.get((replica, digest))
        return since is not None and now - since < _WARM_SECONDS

    def _late(self, call: SpanId) -> None:
        held = self._held.get(call)
        if held is not None:
            self._flights.left(call, held.leader)
            self._let_go(call, overdue=True)

    def _let_go(self, call: SpanId, *, overdue: bool = False, again: bool = True) -> None:
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
            held.follower.lead(held.replica, now, wait=again and not overdue)
        except Exception as error:  # noqa: BLE001 - it is this call's fault and no other's
            held.follower.met(error)
