"""The cache that calls pass: asked before a call is made, told when it has ended. Plain methods on the event loop."""

import asyncio
from collections import deque
from functools import partial
from typing import Final

from msgspec import Raw

from headway.core.clock import Clock
from headway.core.money import MicroUsd
from headway.core.span import AnswerSource
from headway.gateway.caches.figures import Memory, Report, RuleFigures
from headway.gateway.caches.meanings import Found, Meanings
from headway.gateway.caches.outcomes import Given, How, Ticket, Wait, Waiter
from headway.gateway.caches.places import Places, scope_of, variant
from headway.gateway.caches.reading import keepable
from headway.gateway.caches.renewals import Renewals
from headway.gateway.caches.sharing import Sharing
from headway.gateway.deadlines import Deadlines
from headway.gateway.front import Request
from headway.gateway.unforeseen import Unforeseen
from headway.policy.cache.flight import Flights
from headway.policy.cache.kept import AnswerCache, Kept
from headway.policy.cache.keys import CacheKey, exact_key, fields_of
from headway.policy.cache.labels import Drop, labels_of
from headway.policy.cache.rules import CacheRule, CacheRules
from headway.policy.cache.worthy import stands_alone, tags_of, wish_of
from headway.wire.dialect import Dialect
from headway.wire.openai import Answer

PATIENCE_SECONDS: Final = 0.1
"""What a call waits at most for Redis and for its question to be understood."""


class ResponseCache:
    """Answers given again, and calls with one question made once.

    Args:
        rules: for which calls; there should be one, else leave the cache out.
        limit: bytes of all answers in this process.
        clock: the gateway's. deadlines: those that wait are watched by it. unforeseen: faults of those who are told.
        meanings: compares by meaning; ``None``: rules that ask for it work as exact ones.
        sharing: what other workers keep; ``None``: nothing is shared.
        patience: seconds that a call waits for those two at most.
    """

    def __init__(
        self,
        rules: CacheRules,
        limit: int,
        *,
        clock: Clock,
        deadlines: Deadlines,
        unforeseen: Unforeseen,
        meanings: Meanings | None = None,
        sharing: Sharing | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._unforeseen = unforeseen
        self.meanings = meanings
        self.sharing = sharing
        self._patience = patience
        self._answers = AnswerCache(limit)
        self._flights = Flights[Wait]()
        self._live: set[Ticket] = set()
        self._places = Places(rules)
        self._figures = {rule.name: RuleFigures() for rule in rules.all if rule.mode != "off"}
        self._news: deque[tuple[Wait, Given | Ticket]] = deque()
        self._telling = False
        self.renewals = Renewals()

    def adopt(self, rules: CacheRules) -> None:
        """Go by other rules from now on; what is kept stays as it was kept."""
        self._places = Places(rules)
        for rule in rules.all:
            if rule.mode != "off":
                self._figures.setdefault(rule.name, RuleFigures())

    # --- calls

    def ask(
        self, request: Request, dialect: Dialect, model: str, *, tenant: str | None, waiter: Waiter
    ) -> Given | Wait | Ticket | None:
        """Whether a call has to be made.

        Args:
            request: as the caller sent it.
            dialect: the caller's.
            model: what is asked for, after aliases.
            tenant: whose answers these are; ``None``: callers are not known, so each credential has its own.
            waiter: told later, where the answer is a `Wait`.

        Returns:
            The answer; or a place among those who wait; or the right to make the call, of which `answered`, `failed`
            or `not_kept` is to be told; or ``None``: make the call, it is nothing to the cache.
        """
        place = self._places.find(request.path, dialect, model)
        if place is None:
            return None
        fields, rule, asked = request.fields, place.rule, fields_of(request.body)
        figures = self._figures[rule.name]
        wish, tags = wish_of(fields), tags_of(fields)
        if wish == "never" or tags is None or asked is None or not stands_alone(asked):
            figures.bypassed["no-store" if wish == "never" else "tags" if tags is None else "request"] += 1
            return None
        scope, route = scope_of(tenant, fields), variant(place.route, dialect, fields)
        key = exact_key(scope, route, asked)
        now = self._clock.now()
        if wish == "usual":
            hit = self._answers.get(key, now)
            if hit is not None and hit.freshness == "fresh":
                return self._given(rule, hit.kept, "hit", "memory", now)
        else:
            hit = None
        labels = labels_of(scope, rule.name, rule.version, rule.tags | tags)
        seen = "" if self.sharing is None else self.sharing.seen
        ticket = Ticket(rule, dialect, scope, key, labels, seen)
        if wish == "anew":
            figures.bypassed["no-cache"] += 1
            return self._begun(ticket)
        if hit is not None:
            return self._given(rule, hit.kept, "stale", "stale", now, self._refresh(ticket))
        return self._unanswered(ticket, waiter, route, asked, now)

    def answered(self, ticket: Ticket, *, answer: Answer | None, seconds: float, cost: MicroUsd | None) -> None:
        """The call that a ticket was for was answered in full; whoever waited is told.

        Args:
            ticket: whose `copying` client the answer was relayed to.
            answer: what was read of it, if anybody has.
            seconds: from sending the call to the end of its answer.
            cost: ``None``: unknown.
        """
        if ticket.ended:
            return
        now = self._clock.now()
        kept = keepable(ticket, answer, seconds, cost, now, self._figures[ticket.rule.name])
        if kept is None:
            self.not_kept(ticket)
            return
        waits = self._ended(ticket)
        if not ticket.void:
            self._figures[ticket.rule.name].kept += 1
            self._answers.put(ticket.key, kept)
            if self.sharing is not None:
                self.sharing.put(ticket, kept, now)
        ticket.fresh = kept
        if self.meanings is not None:
            self.meanings.learn(ticket)
        for wait in waits:
            self._give(wait, kept, "hit", "flight", now)

    def not_kept(self, ticket: Ticket) -> None:
        """The call's answer is for its caller alone: whoever waited makes a call of its own, all at once."""
        if not ticket.ended:
            for wait in self._ended(ticket):
                self._alone(wait)

    def failed(self, ticket: Ticket) -> None:
        """The call failed, or its client is gone: the next of those who waited makes it."""
        if not ticket.ended:
            self._hand_over(ticket.key, self._ended(ticket))

    # --- the rest of the gateway

    def drop(self, what: Drop) -> int:
        """Forget answers, also of calls under way, and tell other workers.

        Returns:
            How many were kept in this process.

        Raises:
            BadInputError: it is not clear which.
        """
        labels = what.labels()
        if self.sharing is not None:
            self.sharing.drop(labels)
        return self.dropped(labels)

    def dropped(self, labels: frozenset[str]) -> int:
        """Forget what has one of these labels, as another worker has."""
        for ticket in self._live:
            if not (ticket.void or labels.isdisjoint(ticket.labels)):
                ticket.void = True
                if ticket.leads:  # who asks from now on is not to have what is being answered
                    ticket.leads = False
                    ticket.waiting = self._flights.land(ticket.key)
        return self._answers.invalidate(labels)

    def report(self) -> Report:
        """How it goes."""
        answers = self._answers
        return Report(
            memory=Memory(
                entries=len(answers),
                bytes=answers.size,
                limit=answers.limit,
                worth=answers.worth,
                waiting=len(self._flights),
                waiters=self._flights.waiters,
            ),
            changes=answers.figures,
            rules=self._figures,
            shadows={} if self.meanings is None else self.meanings.shadows(),
            shared=None if self.sharing is None else self.sharing.report(),
        )

    def start(self) -> None:
        """Hear of what other workers drop, on the running event loop."""
        if self.sharing is not None:
            self.sharing.start(self.dropped)

    async def close(self) -> None:
        """End what was started; calls under way may still be told of."""
        self.renewals.close()
        if self.sharing is not None:
            await self.sharing.close()
        if self.meanings is not None:
            await self.meanings.close()

    # --- those who wait

    def left(self, wait: Wait) -> None:
        """As `Waiting.left`: one that is being looked for hands over, any other just goes."""
        self._deadlines.discard(wait)
        if wait.ticket.leads:
            self.failed(wait.ticket)
        else:
            self._flights.leave(wait.ticket.key, wait)

    def expired(self, wait: Wait) -> None:
        """As `Waiting.expired`: it makes its call, and the others go on waiting."""
        self._flights.leave(wait.ticket.key, wait)
        self._alone(wait)

    # --- inside

    def _unanswered(
        self, ticket: Ticket, waiter: Waiter, route: str, fields: dict[str, Raw], now: float
    ) -> Wait | Ticket:
        if self._flights.leads(ticket.key):
            ticket.leads = True
            return self._look(self._begun(ticket), waiter, route, fields, now)
        wait = Wait(self, waiter, ticket, now, now + ticket.rule.wait)
        self._flights.wait(ticket.key, wait)
        self._deadlines.add(wait)
        return wait

    def _given(
        self,
        rule: CacheRule,
        kept: Kept,
        how: How,
        source: AnswerSource,
        now: float,
        refresh: Ticket | None = None,
        waited: float = 0.0,
    ) -> Given:
        self._figures[rule.name].gave(kept, source, waited)
        age = max(0, int(now - kept.made))
        return Given(rule=rule.name, kept=kept, source=source, how=how, age=age, refresh=refresh)

    def _refresh(self, ticket: Ticket) -> Ticket | None:
        """The ticket by which a stale answer is made anew, unless somebody is at it."""
        if not self._flights.leads(ticket.key):
            return None
        ticket.leads = True
        self._figures[ticket.rule.name].refreshes += 1
        return self._begun(ticket)

    def _begun(self, ticket: Ticket) -> Ticket:
        self._live.add(ticket)
        return ticket

    def _made(self, ticket: Ticket) -> Ticket:
        """The call is made, for want of an answer."""
        self._figures[ticket.rule.name].misses += 1
        return ticket

    def _ended(self, ticket: Ticket) -> list[Wait]:
        """The ticket is used up; those who waited and still do."""
        ticket.ended = True
        self._live.discard(ticket)
        waits = self._flights.land(ticket.key) if ticket.leads else ticket.waiting
        return [wait for wait in waits if wait.open]

    def _hand_over(self, key: CacheKey, waits: list[Wait]) -> None:
        if not waits:
            return
        first = None
        if self._flights.leads(key):
            first, *waits = waits
            first.ticket.leads = True
            self._deadlines.discard(first)
        for wait in waits:
            self._flights.wait(key, wait)
        if first is not None:
            self._tell(first, self._made(self._begun(first.ticket)))

    def _alone(self, wait: Wait) -> None:
        self._tell(wait, self._made(self._begun(wait.ticket)))

    def _give(self, wait: Wait, kept: Kept, how: How, source: AnswerSource, now: float) -> None:
        self._tell(wait, self._given(wait.ticket.rule, kept, how, source, now, waited=now - wait.since))

    def _tell(self, wait: Wait, outcome: Given | Ticket) -> None:
        """In turn and never within each other: a long row of calls that all fail would be too deep."""
        self._news.append((wait, outcome))
        if self._telling:
            return
        self._telling = True
        try:
            while self._news:
                self._tell_one(*self._news.popleft())
        finally:
            self._telling = False

    def _tell_one(self, wait: Wait, outcome: Given | Ticket) -> None:
        self._deadlines.discard(wait)
        waiter = wait.take()
        try:
            if isinstance(outcome, Given):
                if waiter is not None:
                    waiter.cached(outcome)
            elif waiter is None:
                self.failed(outcome)
            else:
                waiter.uncached(outcome)
        except Exception as error:  # noqa: BLE001 - one call's fault is no other's
            self._unforeseen.met(error)
            if isinstance(outcome, Ticket):
                self.failed(outcome)

    # --- looking elsewhere

    def _look(self, ticket: Ticket, waiter: Waiter, route: str, fields: dict[str, Raw], now: float) -> Wait | Ticket:
        wait = Wait(self, waiter, ticket, now, now + self._patience)
        if self.sharing is not None:
            wait.lookups += self.sharing.get(ticket, partial(self._shared, wait))
        if self.meanings is not None:
            ticket.question = asked = self.meanings.question(ticket.rule, ticket.scope, route, fields)
            if asked is not None:
                serving = self.meanings.may_serve(ticket.rule, ticket.scope)
                sent = self.meanings.find(ticket.rule, asked, partial(self._meant, wait, serving))
                wait.lookups += sent and serving
        if not wait.lookups:
            wait.take()
            return self._made(ticket)
        asyncio.get_running_loop().call_later(self._patience, self._looked, wait, wait.lookups)
        return wait

    def _looked(self, wait: Wait, lookups: int = 1) -> None:
        """So many places have nothing."""
        if wait.open and wait.lookups:
            wait.lookups = max(0, wait.lookups - lookups)
            if not wait.lookups:
                self._tell(wait, self._made(wait.ticket))

    def _shared(self, wait: Wait, kept: Kept | None) -> None:
        """Another worker's answer has come, or there is none."""
        ticket = wait.ticket
        if kept is None or ticket.void:
            self._looked(wait)
            return
        if not ticket.ended:
            self._answers.put(ticket.key, kept)
            self._found(wait, kept, "hit", "shared")

    def _meant(self, wait: Wait, serving: bool, found: Found | None) -> None:
        """What the question means is known, or cannot be."""
        ticket, meanings = wait.ticket, self.meanings
        if found is not None and meanings is not None and ticket.question is not None:
            ticket.meaning, key = found.meaning, found.near.key
            near = None if key is None else self._answers.peek(key, self._clock.now())
            if near is None and key is not None:
                meanings.forget(ticket.rule, ticket.question, key)
            serve = meanings.judge(ticket.rule, ticket.scope, found=near is not None)
            if near is not None and serve and not ticket.void and self._found(wait, near, "semantic", "semantic"):
                return
            ticket.near = near
            meanings.learn(ticket)
        if serving:
            self._looked(wait)

    def _found(self, wait: Wait, kept: Kept, how: How, source: AnswerSource) -> bool:
        """Give it to whoever looks and to those who wait for that; False: the call is being made."""
        if not (wait.open and wait.lookups) or wait.ticket.ended:
            return False
        now = self._clock.now()
        for one in (wait, *self._ended(wait.ticket)):
            self._give(one, kept, how, source, now)
        return True
