"""One worker's reservations: in memory, out of what it has drawn from the book.

Pure: it reads no clock and speaks to no book itself. Whoever drives it takes `Ledger.report`, brings it to the book
and the reply back to `Ledger.take`; calls that found too little (`Short`) are tried again then, and refused if it is
still too little.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from headway.core.access import Caller
from headway.core.limits import Limit
from headway.core.task import TaskId
from headway.policy.limits.book import (
    LEASE_SECONDS,
    USABLE_SECONDS,
    Correction,
    Exchange,
    Held,
    Reply,
    Standing,
    portion,
)
from headway.policy.limits.counter import Counter, Plan, Row, Warned
from headway.policy.limits.grant import Ask, Grant, Short, wants_of
from headway.policy.limits.planning import Terms, plan_for, terms_for
from headway.policy.limits.refused import Refused, longest, price_unknown, refusal

_IDLE_SECONDS: Final = 1.0
"""What nobody took for as long is given back, for other workers to draw."""
_FORGET_SECONDS: Final = 10.0
_RENEW_SECONDS: Final = LEASE_SECONDS / 2
"""A worker that has not spoken to the book for as long hands out no part of a gauge: the book may soon do so."""


class Ledger:
    """Grants calls what they may use, and holds every limit.

    The book is the authority; whatever this worker grants it has drawn from there first. So the sum of what is
    settled and reserved by all workers passes no limit, in whatever order they work. Only a call that uses more than
    it reserved can pass one: that is recorded as it was, and the next call is refused.
    """

    def __init__(self) -> None:
        self.settlements = 0
        """Grants that ended since the start."""
        self._terms: dict[str, Terms] = {}
        self._plans: dict[tuple[str, TaskId], Plan] = {}
        self._counters: dict[str, Counter] = {}
        self._replaced: list[Plan] = []
        """Plans of yesterday, or of limits as they were, on which calls are still under way."""
        self._changed: set[Counter] = set()
        self._warned: list[str] = []
        self._grants = self._made = self._reports = 0
        self._unanswered: Exchange | None = None
        self._spoken = float("-inf")
        self._looked = self._swept = 0.0

    # --- calls

    def reserve(self, ask: Ask, now: float, wall: float, *, answered: int | None = None) -> Grant | Refused | Short:
        """Reserve what a call may use, of every limit it falls under, or of none.

        Args:
            ask: the call.
            now: seconds on an axis that never runs backwards.
            wall: epoch seconds, by which days and months are told; it may be set back.
            answered: the number of the first report that was made on behalf of this call, if there was one: what the
                book has told of since then is final.
        """
        caller = ask.caller
        plan = self._plans.get((caller.key.id, ask.task))
        if plan is None or plan.caller is not caller or not plan.since <= wall < plan.until:
            begins = plan is None and ask.fresh
            plan = self._new_plan(caller, ask.task, wall)
            if begins:
                self._draw_unasked(plan, (1, ask.tokens, ask.money or 0))
        plan.touched = now
        money = ask.money
        if money is None:
            problem = _price_needed(plan)
            if problem is not None:
                return problem
            money = 0
        amounts = (1, ask.tokens, money)
        if not self._plenty(plan, amounts, now):
            lacking = self._lacking(plan, amounts, now)
            if lacking:
                return _short(lacking, wall, answered)
        if plan.elapsed is None:
            return self._grant(plan, amounts, None, now)
        counter, limit = plan.elapsed
        deadline = (counter.opened or 0.0) + limit.stop
        if now < deadline:
            return self._grant(plan, amounts, deadline, now)
        counter.used = int(now - (counter.opened or 0.0))
        return refusal(counter, 0, limit.stop, wall)

    def settle(self, grant: Grant, tokens: int | None, money: int | None) -> bool:
        """The call has ended and used so much; ``None``: unknown, so it is taken to be what was reserved.

        Returns:
            False: it had ended before, and nothing changed.
        """
        if grant.ended:
            return False
        used = (1, grant.tokens if tokens is None else tokens, grant.money if money is None else money)
        reserved = (1, grant.tokens, grant.money)
        self._end(grant)
        for counter, which in grant.plan.totals:
            kept, took = reserved[which], used[which]
            counter.spent += took
            counter.free += kept - took
            self._changed.add(counter)
        self._correct(grant, reserved, used)
        return True

    def release(self, grant: Grant) -> bool:
        """The call was not made: everything that was reserved for it is free again.

        Returns:
            False: it had ended before, and nothing changed.
        """
        if grant.ended:
            return False
        reserved = (1, grant.tokens, grant.money)
        self._end(grant)
        for counter, which in grant.plan.totals:
            counter.free += reserved[which]
        self._correct(grant, reserved, (0, 0, 0))
        return True

    # --- the book

    def report(self, shorts: list[Short], now: float) -> Exchange | None:
        """What the book is to hear: what changed since the last report, and what waiting calls need.

        Until `take` was called with the answer, the same report is given again, without wishes.

        Args:
            shorts: what calls were told that wait.
            now: when it is sent.
        """
        if self._unanswered is not None:
            return self._unanswered
        wants = wants_of(shorts)
        for want in wants:
            self._give_up(self._counters[want.counter])
        if now > self._spoken + _RENEW_SECONDS:
            for counter in self._counters.values():
                if counter.kind == "gauge":
                    self._give_up(counter)
        if now - self._looked >= _IDLE_SECONDS:
            self._looked = now
            self._look(now)
        if not (wants or self._changed or self._warned or now > self._spoken + _RENEW_SECONDS / 3):
            return None
        self._reports += 1
        held, corrections = self._changes()
        exchange = Exchange(
            number=self._reports,
            settled=self.settlements,
            held=held,
            corrections=corrections,
            warned=tuple(self._warned),
            wants=wants,
        )
        self._warned.clear()
        self._unanswered = msgspec.structs.replace(exchange, wants=())
        return exchange

    def take(self, exchange: Exchange, reply: Reply, sent: float) -> None:
        """The book has answered a report that was sent at ``sent``."""
        self._unanswered = None
        self._spoken = sent
        for want, standing in zip(exchange.wants, reply.standings, strict=True):
            self._stand(self._counters[want.counter], standing, sent)

    def lost(self, exchange: Exchange) -> None:
        """The book could not be asked: whether it has given anything is not known, so it is told anew what is held."""
        self._changed.update(self._counters[want.counter] for want in exchange.wants if want.kind != "rate")

    def disown(self) -> None:
        """The book does not know this worker any more: what it held is gone, and so is what it was about to report."""
        self._unanswered = None
        self._spoken = float("-inf")
        for counter in self._counters.values():
            counter.give_up()
            self._changed.add(counter)

    def sweep(self, now: float) -> None:
        """Forget plans and counters that nobody has needed for a while; they are drawn anew when they are."""
        if now - self._swept < _FORGET_SECONDS:
            return
        self._swept = now
        idle = now - _FORGET_SECONDS
        for key in [key for key, plan in self._plans.items() if not plan.open and plan.touched < idle]:
            del self._plans[key]
        self._replaced = [plan for plan in self._replaced if plan.open]
        self._terms.clear()  # made anew of counters that are remembered below
        plans = (*self._plans.values(), *self._replaced)
        needed = {id(counter) for plan in plans for counter in plan.counters()}
        self._counters = {
            name: counter
            for name, counter in self._counters.items()
            if id(counter) in needed or not counter.at_rest or counter in self._changed
        }

    @property
    def size(self) -> int:
        """Plans and counters that are remembered."""
        return len(self._plans) + len(self._counters)

    # --- inside

    def _new_plan(self, caller: Caller, task: TaskId, wall: float) -> Plan:
        self._made += 1
        terms = self._terms.get(caller.key.id)
        if terms is None or terms.common.caller is not caller or not terms.common.since <= wall < terms.common.until:
            terms = self._terms[caller.key.id] = terms_for(caller, wall, self._known)
        plan = plan_for(terms, task, self._made, self._known)
        replaced = self._plans.get((caller.key.id, task))
        if replaced is not None and replaced.open:
            self._replaced.append(replaced)
        self._plans[caller.key.id, task] = plan
        return plan

    def _draw_unasked(self, plan: Plan, amounts: tuple[int, int, int]) -> None:
        """Draw what the first call of a task needs of what is the task's alone."""
        for counter, which, stop, _ in plan.rows[len(self._terms[plan.caller.key.id].common.rows) :]:
            given = portion(stop, amounts[which], amounts[which])
            counter.drawn += given
            counter.free += given
            counter.base += given
            self._changed.add(counter)

    def _known(self, name: str, made: Callable[[], Counter]) -> Counter:
        counter = self._counters.get(name)
        if counter is None:
            counter = self._counters[name] = made()
        return counter

    def _grant(self, plan: Plan, amounts: tuple[int, int, int], deadline: float | None, now: float) -> Grant:
        warned: tuple[Warned, ...] = ()
        for counter, which, _, _ in plan.rows:
            counter.free -= amounts[which]
        for row in plan.warning:
            counter, _, _, warn = row
            if warn is not None and counter.seen >= warn and not counter.warned:
                warned += (self._warning(row, counter.seen),)
        if plan.elapsed is not None:
            warned += self._elapsed_warning(*plan.elapsed, now)
        plan.open += 1
        self._grants += 1
        slots = tuple([counter.at for counter, _ in plan.rates]) if plan.rates else ()
        return Grant(self._grants, plan, amounts[1], amounts[2], slots, deadline, warned)

    def _warning(self, row: Row, used: int) -> Warned:
        counter, _, stop, warn = row
        counter.warned = True
        if counter.kind in {"total", "elapsed"}:
            self._warned.append(counter.name)
        return Warned(
            counter=counter.name,
            owner=counter.owner,
            measure=counter.measure,
            window=counter.window,
            warn=warn or 0,
            stop=stop,
            used=used,
        )

    def _elapsed_warning(self, counter: Counter, limit: Limit, now: float) -> tuple[Warned, ...]:
        used = int(now - (counter.opened or now))
        if limit.warn is None or counter.warned or used < limit.warn:
            return ()
        return (self._warning((counter, 0, limit.stop, limit.warn), used),)

    def _end(self, grant: Grant) -> None:
        grant.ended = True
        grant.plan.open -= 1
        self.settlements += 1
        for counter in grant.plan.gauges:
            counter.free += 1

    def _correct(self, grant: Grant, reserved: tuple[int, int, int], used: tuple[int, int, int]) -> None:
        for (counter, which), at in zip(grant.plan.rates, grant.slots, strict=True):
            unused = reserved[which] - used[which]
            if unused:
                counter.back[at] = counter.back.get(at, 0) + unused
                counter.base -= unused
                self._changed.add(counter)

    def _plenty(self, plan: Plan, amounts: tuple[int, int, int], now: float) -> bool:
        """Whether there is enough of everything: a quick look, which says no where a closer one might say yes."""
        for counter, which, stop, _ in plan.rows:
            if amounts[which] > counter.free or counter.base > stop:
                return False
        for counter, _ in plan.rates:
            if counter.expires < now:
                return False
        if plan.gauges and now > self._spoken + _RENEW_SECONDS:
            return False
        return plan.elapsed is None or plan.elapsed[0].opened is not None

    def _lacking(self, plan: Plan, amounts: tuple[int, int, int], now: float) -> list[tuple[Counter, int, int]]:
        lapsed = now > self._spoken + _RENEW_SECONDS
        lacking = [
            (counter, amounts[which], stop)
            for counter, which, stop, _ in plan.rows
            if (need := amounts[which])
            and (
                need > counter.free
                or counter.seen + need > stop
                or counter.expires < now
                or (lapsed and counter.kind == "gauge")
            )
        ]
        if plan.elapsed is not None and plan.elapsed[0].opened is None:
            lacking.append((plan.elapsed[0], 0, plan.elapsed[1].stop))
        return lacking

    def _give_up(self, counter: Counter) -> None:
        counter.give_up()
        self._changed.add(counter)

    def _look(self, now: float) -> None:
        idle = now - _IDLE_SECONDS
        busy = {id(row[0]) for plan in self._plans.values() if plan.touched >= idle for row in plan.rows}
        for counter in self._counters.values():
            if counter.free > 0 and (id(counter) not in busy or counter.expires < now):
                self._give_up(counter)

    def _changes(self) -> tuple[tuple[Held, ...], tuple[Correction, ...]]:
        held: list[Held] = []
        corrections: list[Correction] = []
        for counter in self._changed:
            if counter.kind == "rate":
                corrections += [Correction(counter.name, at, unused) for at, unused in counter.back.items()]
                counter.back.clear()
            elif counter.kind != "elapsed":
                held.append(counter.report())
        self._changed.clear()
        return tuple(held), tuple(corrections)

    def _stand(self, counter: Counter, standing: Standing, sent: float) -> None:
        counter.answered = self._reports
        counter.used, counter.held, counter.wait = standing.used, standing.held, standing.wait
        if counter.kind == "elapsed":
            if counter.opened is None:
                counter.opened = sent - standing.age
            return
        if counter.kind == "rate":
            counter.at, counter.expires = standing.at, sent + USABLE_SECONDS
        else:
            counter.drawn += standing.given
        counter.free += standing.given
        counter.base = standing.used + standing.held
        if counter.warned and counter.warn is not None and counter.seen < counter.warn:
            counter.warned = False


def _short(lacking: list[tuple[Counter, int, int]], wall: float, answered: int | None) -> Short | Refused:
    hopeless = [
        refusal(counter, need, stop, wall)
        for counter, need, stop in lacking
        if need > stop or (need and answered is not None and counter.answered >= answered and not _untold(counter))
    ]
    return longest(hopeless) if hopeless else Short(tuple(lacking))


def _untold(counter: Counter) -> bool:
    """Of a rate the book gave something, and others took it: when it frees is told to who asks again."""
    return counter.kind == "rate" and counter.wait is None


def _price_needed(plan: Plan) -> Refused | None:
    for counter, which, stop, _ in plan.rows:
        if which == 2:  # noqa: PLR2004 - money, as `Row` says
            return price_unknown(counter, stop)
    return None
