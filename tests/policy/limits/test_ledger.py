"""Reservations of one worker: exact, and told exactly."""

import pytest

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.limits import CallerLimits, Limit, Measure, TaskLimits, Window
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.policy.limits.grant import Ask, Grant, Short
from headway.policy.limits.ledger import Ledger
from headway.policy.limits.memory_book import MemoryBook
from headway.policy.limits.refused import Refused, Why

NOON = 1_796_040_000.0
"""2026-11-30 12:00 UTC."""


class Worker:
    """A ledger with a book, driven as the gateway drives it, on a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall = NOON
        self.book = MemoryBook(lambda: self.now)
        self.book.join("w")
        self.ledger = Ledger()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    def reserve(self, caller: Caller, tokens: int = 0, money: int | None = 0, task: str = "t") -> Grant | Refused:
        ask = Ask(caller, TaskId(task), tokens, None if money is None else MicroUsd(money))
        outcome = self.ledger.reserve(ask, self.now, self.wall)
        answered = None
        while isinstance(outcome, Short):
            exchange = self.speak(outcome)
            answered = answered or exchange
            outcome = self.ledger.reserve(ask, self.now, self.wall, answered=answered)
        return outcome

    def speak(self, *shorts: Short) -> int:
        exchange = self.ledger.report(list(shorts), self.now)
        if exchange is None:
            return 0
        self.ledger.take(exchange, self.book.exchange("w", exchange), self.now)
        return exchange.number

    def granted(self, caller: Caller, tokens: int = 0, money: int | None = 0, task: str = "t") -> Grant:
        outcome = self.reserve(caller, tokens, money, task)
        assert isinstance(outcome, Grant), outcome
        return outcome

    def refused(self, caller: Caller, tokens: int = 0, money: int | None = 0, task: str = "t") -> Refused:
        outcome = self.reserve(caller, tokens, money, task)
        assert isinstance(outcome, Refused), outcome
        return outcome


def caller(
    limits: CallerLimits | None = None, task: TaskLimits | None = None, tenant: CallerLimits | None = None
) -> Caller:
    key = Key(
        id=KeyId("k1"),
        tenant=TenantId("acme"),
        prefix="sk-hw-abc",
        created=0.0,
        limits=limits or CallerLimits(),
        task=task or TaskLimits(),
    )
    return Caller(key, Tenant(id=TenantId("acme"), limits=tenant or CallerLimits()))


def per_minute(requests: int) -> CallerLimits:
    return CallerLimits(requests_per_minute=Limit(requests))


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_who_has_no_limits_is_never_refused(worker: Worker) -> None:
    grant = worker.granted(caller(), tokens=10**9, money=10**9)
    assert worker.ledger.settle(grant, None, None)


def test_money_is_settled_at_what_it_was(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)))
    grant = worker.granted(who, money=100)
    assert worker.refused(who, money=1).why == "reserved"
    worker.ledger.settle(grant, None, 30)
    worker.granted(who, money=70)
    refused = worker.refused(who, money=1)
    assert (refused.used, refused.reserved, refused.stop) == (30, 70, 100)


def test_what_is_released_is_free_again(worker: Worker) -> None:
    who = caller(CallerLimits(concurrency=Limit(1), money_per_day=Limit(10), requests_per_minute=Limit(1)))
    for _ in range(5):
        worker.ledger.release(worker.granted(who, money=10))


def test_a_grant_ends_once(worker: Worker) -> None:
    who = caller(CallerLimits(concurrency=Limit(2), money_per_day=Limit(100)))
    grant = worker.granted(who, money=10)
    assert worker.ledger.settle(grant, None, 10)
    assert not worker.ledger.settle(grant, None, 10)
    assert not worker.ledger.release(grant)
    worker.speak()
    assert worker.book.uses(("key:k1/money/2026-11-30",))[0].used == 10


def test_more_than_reserved_is_recorded_and_blocks_the_next(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)))
    worker.ledger.settle(worker.granted(who, money=60), None, 160)
    refused = worker.refused(who, money=1)
    assert (refused.why, refused.used) == ("used", 160)


def test_an_unknown_use_counts_as_reserved(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)))
    worker.ledger.settle(worker.granted(who, money=60), None, None)
    worker.speak()
    assert worker.book.uses(("key:k1/money/2026-11-30",))[0].used == 60


def test_an_unknown_price_is_no_way_round_a_limit_on_money(worker: Worker) -> None:
    refused = worker.refused(caller(tenant=CallerLimits(money_per_month=Limit(100))), money=None)
    assert (refused.why, refused.owner, refused.wait) == ("price_unknown", "tenant acme", None)
    worker.granted(caller(per_minute(1)), money=None)


def test_a_call_beyond_its_limit_is_told_so_for_good(worker: Worker) -> None:
    refused = worker.refused(caller(CallerLimits(tokens_per_minute=Limit(100))), tokens=101)
    assert (refused.why, refused.wait, refused.need) == ("too_large", None, 101)


def test_requests_free_exactly_when_told(worker: Worker) -> None:
    who = caller(per_minute(2))
    worker.granted(who)
    worker.wait(10)
    worker.granted(who)
    refused = worker.refused(who)
    assert refused.wait is not None
    # drawn at 1000, to be handed out until 1001, so counted from 1002: free at 1062, which is 52 s away
    assert refused.wait == 52
    worker.wait(51.9)
    worker.refused(who)
    worker.wait(0.1)
    worker.granted(who)
    assert worker.refused(who).wait == 10


def test_no_minute_has_more_requests_than_its_limit(worker: Worker) -> None:
    who, times = caller(per_minute(7)), list[float]()
    for _ in range(300):
        if isinstance(worker.reserve(who), Grant):
            times.append(worker.now)
        worker.wait(0.7)
    assert all(sum(end - 60 < at <= end for at in times) <= 7 for end in times)
    assert len(times) >= 7 * 3


def test_tokens_not_used_can_be_used_by_others(worker: Worker) -> None:
    who = caller(CallerLimits(tokens_per_minute=Limit(100)))
    grant = worker.granted(who, tokens=90)
    assert worker.refused(who, tokens=20).why == "used"
    worker.ledger.settle(grant, 10, None)
    worker.granted(who, tokens=90)


def test_tokens_beyond_what_was_reserved_count(worker: Worker) -> None:
    who = caller(CallerLimits(tokens_per_minute=Limit(100)))
    worker.ledger.settle(worker.granted(who, tokens=10), 95, None)
    worker.refused(who, tokens=10)
    worker.granted(who, tokens=5)


def test_calls_at_once(worker: Worker) -> None:
    who = caller(CallerLimits(concurrency=Limit(2)))
    first, _ = worker.granted(who), worker.granted(who)
    refused = worker.refused(who)
    assert (refused.measure, refused.reserved, refused.wait) == ("concurrency", 2, 1.0)
    worker.ledger.settle(first, None, None)
    worker.granted(who)


def test_a_day_ends_at_midnight(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)))
    worker.ledger.settle(worker.granted(who, money=100), None, 100)
    refused = worker.refused(who, money=1)
    assert (refused.wait, refused.frees_at) == (12 * 3600, NOON + 12 * 3600)
    worker.wait(12 * 3600 - 1)
    worker.refused(who, money=1)
    worker.wait(1)
    worker.granted(who, money=100)


def test_a_clock_set_back_over_midnight_neither_frees_nor_doubles(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100), money_per_month=Limit(150)))
    worker.ledger.settle(worker.granted(who, money=80), None, 80)
    worker.wait(12 * 3600)  # 1 December: another day and another month
    worker.ledger.settle(worker.granted(who, money=50), None, 50)
    worker.wall -= 3600
    assert worker.refused(who, money=21).used == 80
    worker.granted(who, money=20)
    worker.wall += 3600
    assert worker.refused(who, money=51).used == 50


def test_the_longest_wait_of_several_limits_is_told(worker: Worker) -> None:
    who = caller(CallerLimits(requests_per_minute=Limit(1), money_per_day=Limit(10)))
    worker.ledger.settle(worker.granted(who, money=10), None, 10)
    refused = worker.refused(who, money=1)
    assert (refused.measure, refused.wait) == ("money", 12 * 3600)


def test_a_task_has_its_own_calls_tokens_and_money(worker: Worker) -> None:
    who = caller(task=TaskLimits(calls=Limit(2), tokens=Limit(100), money=Limit(1000)))
    for _ in range(2):
        worker.ledger.settle(worker.granted(who, tokens=10, money=10), 10, 10)
    refused = worker.refused(who)
    assert (refused.owner, refused.measure, refused.used, refused.stop, refused.wait) == ("task t", "calls", 2, 2, None)
    worker.granted(who, tokens=100, money=1000, task="other")


def test_a_task_has_its_seconds_and_is_told_what_is_left(worker: Worker) -> None:
    who = caller(task=TaskLimits(seconds=Limit(30, warn=20)))
    assert worker.granted(who).deadline == worker.now + 30
    worker.wait(19)
    assert worker.granted(who).warned == ()
    worker.wait(1)
    (warned,) = worker.granted(who).warned
    assert (warned.measure, warned.used) == ("seconds", 20)
    assert worker.granted(who).warned == ()
    worker.wait(10)
    refused = worker.refused(who)
    assert (refused.measure, refused.used, refused.why, refused.wait) == ("seconds", 30, "used", None)


def test_the_stricter_of_two_limits_on_a_task_holds(worker: Worker) -> None:
    who = caller(task=TaskLimits(calls=Limit(5)))
    strict = Caller(who.key, Tenant(id=TenantId("acme"), task=TaskLimits(calls=Limit(1))))
    worker.granted(strict)
    assert worker.refused(strict).stop == 1


def test_a_warning_is_given_once_a_crossing(worker: Worker) -> None:
    who = caller(CallerLimits(concurrency=Limit(5, warn=2)))
    first = worker.granted(who)
    assert first.warned == ()
    second = worker.granted(who)
    assert [warned.used for warned in second.warned] == [2]
    assert worker.granted(who).warned == ()
    worker.ledger.release(first)
    worker.ledger.release(second)
    worker.wait(5)
    worker.speak()
    again = [worker.granted(who).warned for _ in range(2)]
    assert [len(warned) for warned in again] == [1, 0]


def test_a_limit_made_lower_holds_at_once(worker: Worker) -> None:
    worker.ledger.settle(worker.granted(caller(CallerLimits(money_per_day=Limit(1000))), money=50), None, 50)
    assert worker.refused(caller(CallerLimits(money_per_day=Limit(60))), money=11).used == 50
    worker.granted(caller(CallerLimits(money_per_day=Limit(60))), money=10)


def test_tenant_and_key_are_both_held(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)), tenant=CallerLimits(money_per_day=Limit(50)))
    assert worker.refused(who, money=60).owner == "tenant acme"
    worker.granted(who, money=50)


def test_a_refusal_says_which_limit_its_value_its_use_and_when_it_frees(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(5_000_000)))
    worker.ledger.settle(worker.granted(who, money=4_990_000), None, 4_990_000)
    assert worker.refused(who, money=20_000).told() == (
        "The key k1 has a limit of 5.00 USD a day: 4.99 USD are used; this call may use 0.02 USD. Try again in 43200 s."
    )


def test_of_calls_at_once_all_that_are_too_many_are_told_the_same_time(worker: Worker) -> None:
    """Ten of thirty are let through by the first answer of the book, which says of no time."""
    ask = Ask(caller(per_minute(10)), TaskId("t"), 0, MicroUsd(0))
    asking = list[tuple[Grant | Refused | Short, int | None]]()
    asking += [(worker.ledger.reserve(ask, worker.now, worker.wall), None) for _ in range(30)]
    outcomes = list[Grant | Refused]()
    while asking:
        number = worker.speak(*[short for short, _ in asking if isinstance(short, Short)])
        waiting = asking.copy()
        asking.clear()
        for _, before in waiting:
            answered = before or number
            outcome = worker.ledger.reserve(ask, worker.now, worker.wall, answered=answered)
            if isinstance(outcome, Short):
                asking.append((outcome, answered))
            else:
                outcomes.append(outcome)
    refused = [one for one in outcomes if isinstance(one, Refused)]
    assert len(outcomes) - len(refused) == 10
    # drawn at 1000, counted from the end of second 1001, for 60 s
    assert {(one.why, one.used, one.wait, one.seconds) for one in refused} == {("used", 10, 62.0, 62)}


def refused_of(measure: Measure, window: Window, why: Why = "used", wait: float | None = 1.0) -> Refused:
    owner = "task t" if window == "task" else "key k1"
    return Refused(
        why=why,
        counter="c",
        owner=owner,
        measure=measure,
        window=window,
        stop=5,
        used=1,
        reserved=4,
        need=1,
        wait=wait,
    )


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (
            refused_of("requests", "minute", wait=61.2),
            "The key k1 has a limit of 5 requests a minute: 1 request is used. Try again in 62 s.",
        ),
        (
            refused_of("tokens", "minute", wait=61.2),
            (
                "The key k1 has a limit of 5 tokens a minute: 1 token is used, or reserved by calls under way;"
                " this call may use 1 token. Try again in 62 s, or sooner if those end with less."
            ),
        ),
        (
            refused_of("concurrency", "now", "reserved"),
            (
                "The key k1 has a limit of 5 calls at once, and all are taken. When they end is not known: try again in"
                " 1 s."
            ),
        ),
        (
            refused_of("calls", "task", "reserved"),
            (
                "The task t has a limit of 5 calls: 1 call is used and 4 calls are reserved by calls under way."
                " When they end is not known: try again in 1 s."
            ),
        ),
        (
            refused_of("calls", "task", wait=None),
            "The task t has a limit of 5 calls: 1 call is used. No wait frees any: end the task, or raise the limit.",
        ),
        (
            refused_of("requests", "minute", "too_large", wait=None),
            "The key k1 has a limit of 5 requests a minute, which lets no call through. Raise the limit.",
        ),
    ],
)
def test_a_refusal_is_told_in_plain_words(refused: Refused, told: str) -> None:
    assert refused.told() == told


def test_memory_is_bounded_by_what_is_in_use(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(10**9)), TaskLimits(calls=Limit(9), seconds=Limit(9)))
    for number in range(500):
        worker.ledger.settle(worker.granted(who, money=1, task=str(number)), None, 1)
    assert worker.ledger.size > 1000
    for _ in range(3):
        worker.wait(11)
        worker.speak()
        worker.ledger.sweep(worker.now)
    assert worker.ledger.size == 0
    assert worker.refused(who, money=10**9).used == 500


def test_a_task_forgotten_in_memory_is_still_limited(worker: Worker) -> None:
    who = caller(task=TaskLimits(calls=Limit(1), seconds=Limit(100)))
    worker.ledger.settle(worker.granted(who), None, None)
    for _ in range(3):
        worker.wait(11)
        worker.speak()
        worker.ledger.sweep(worker.now)
    assert worker.ledger.size == 0
    assert worker.refused(who).measure == "calls"
    worker.wait(70)
    assert worker.refused(caller(task=TaskLimits(seconds=Limit(100)))).used == 103


def test_what_was_drawn_from_a_rate_is_not_hoarded(worker: Worker) -> None:
    who = caller(per_minute(160))
    assert worker.granted(who).slots == (1002,)  # and nine more were drawn with it
    assert worker.granted(who).slots == (1002,)
    worker.wait(5)
    assert worker.granted(who).slots == (1007,)
    assert worker.ledger.settlements == 0


def begun(worker: Worker, who: Caller, task: str, tokens: int) -> Grant | Refused | Short:
    """The first call of a task whose name was made here: not asked for, what comes of it at once."""
    return worker.ledger.reserve(Ask(who, TaskId(task), tokens, MicroUsd(0), fresh=True), worker.now, worker.wall)


def test_a_task_that_begins_here_need_not_wait_for_the_book_and_the_book_hears_of_it(worker: Worker) -> None:
    who = caller(task=TaskLimits(calls=Limit(2), tokens=Limit(1600)))
    first = begun(worker, who, "t", tokens=1000)
    assert isinstance(first, Grant)
    assert worker.book.uses(("task:acme:t/tokens/task",))[0].held == 0
    worker.speak()
    calls, tokens = worker.book.uses(("task:acme:t/calls/task", "task:acme:t/tokens/task"))
    assert (calls.used, calls.held, tokens.used, tokens.held) == (0, 1, 0, 1000)
    worker.ledger.settle(first, 900, 0)
    worker.speak()
    calls, tokens = worker.book.uses(("task:acme:t/calls/task", "task:acme:t/tokens/task"))
    assert (calls.used, calls.held, tokens.used) == (1, 0, 900)
    assert tokens.held <= 100
    worker.granted(who, tokens=700)
    assert worker.refused(who).measure == "calls"


def test_its_limits_hold_from_the_first_call_on(worker: Worker) -> None:
    who = caller(task=TaskLimits(tokens=Limit(100)))
    assert isinstance(begun(worker, who, "t", tokens=101), Refused)
    assert isinstance(begun(worker, who, "u", tokens=60), Grant)
    assert worker.refused(who, tokens=41, task="u").why == "reserved"


def test_what_is_not_the_tasks_alone_is_still_asked_for(worker: Worker) -> None:
    who = caller(per_minute(5), TaskLimits(calls=Limit(5), seconds=Limit(60)))
    short = begun(worker, who, "t", tokens=0)
    assert isinstance(short, Short)
    assert {counter.measure for counter, _, _ in short.lacking} == {"requests", "seconds"}


def test_two_tasks_of_one_caller_share_its_counters_over_a_sweep(worker: Worker) -> None:
    who = caller(CallerLimits(money_per_day=Limit(100)), TaskLimits(calls=Limit(5)))
    held = worker.granted(who, money=60, task="a")
    worker.speak()
    worker.wait(20.0)
    worker.ledger.sweep(worker.now)
    assert worker.refused(who, money=41, task="b").why == "reserved"
    worker.ledger.release(held)
    worker.granted(who, money=100, task="c")
