"""Whatever the interleaving of workers, calls and failures: no limit is passed, nothing is lost or counted twice."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.policy.limits.book import Exchange, Reply
from headway.policy.limits.grant import Ask, Grant, Short
from headway.policy.limits.ledger import Ledger
from headway.policy.limits.memory_book import MemoryBook
from headway.policy.limits.periods import day_of
from headway.policy.limits.refused import Refused

DAY, TENANT_DAY, TASK_MONEY, TOKENS, REQUESTS, AT_ONCE, TASK_CALLS = 20, 30, 18, 25, 6, 3, 7
KEYS = ("a", "b")
TASKS = ("t1", "t2")
AMOUNTS = st.sampled_from((0, 1, 1, 2, 3, 9))


@dataclass
class Made:
    """A grant, as the test knows it."""

    key: str
    task: str
    tokens: int
    money: int
    day: str
    at: float
    grant: Grant
    settled: bool = False


@dataclass
class Worker:
    name: str
    ledger: Ledger = field(default_factory=Ledger)
    open: list[Made] = field(default_factory=list["Made"])
    folded: int = 0
    """How many of `ended` the book has."""
    ended: list[tuple[Made, int]] = field(default_factory=list["tuple[Made, int]"])
    """Every end in order, with the money that it was settled at."""
    flying: tuple[Exchange, float] | None = None
    answer: Reply | None = None


class Interleaving(RuleBasedStateMachine):
    """Three workers on one book."""

    @property
    def most_used(self) -> int:
        """What a call may use beyond its reservation, in the test at hand."""
        return 0

    def __init__(self) -> None:
        super().__init__()
        self.now, self.wall = 5000.0, 1_796_083_000.0  # 200 s before midnight UTC
        self.book = MemoryBook(lambda: self.now)
        self.born = 0
        self.workers = [self.worker() for _ in range(3)]
        self.made: list[Made] = []
        self.callers = {
            key: Caller(
                Key(
                    id=KeyId(key),
                    tenant=TenantId("t"),
                    prefix="",
                    created=0.0,
                    limits=CallerLimits(
                        requests_per_minute=Limit(REQUESTS),
                        tokens_per_minute=Limit(TOKENS),
                        concurrency=Limit(AT_ONCE),
                        money_per_day=Limit(DAY),
                    ),
                    task=TaskLimits(money=Limit(TASK_MONEY), calls=Limit(TASK_CALLS)),
                ),
                Tenant(id=TenantId("t"), limits=CallerLimits(money_per_day=Limit(TENANT_DAY))),
            )
            for key in KEYS
        }

    def worker(self) -> Worker:
        self.born += 1
        worker = Worker(f"w{self.born}")
        self.book.join(worker.name)
        return worker

    # --- what can happen

    @rule(
        who=st.integers(0, 2),
        key=st.sampled_from(KEYS),
        task=st.sampled_from(TASKS),
        tokens=AMOUNTS,
        money=AMOUNTS,
    )
    def call(self, who: int, key: str, task: str, tokens: int, money: int) -> None:
        worker = self.workers[who]
        outcome = self.reserve(worker, Ask(self.callers[key], TaskId(task), tokens, MicroUsd(money)))
        if isinstance(outcome, Grant):
            day = day_of(self.wall).name
            made = Made(key, task, tokens, money, day, self.now, outcome)
            self.made.append(made)
            worker.open.append(made)

    def reserve(self, worker: Worker, ask: Ask) -> Grant | Refused | None:
        """The outcome; ``None`` while an exchange is under way that the call would have to wait for."""
        outcome = worker.ledger.reserve(ask, self.now, self.wall)
        answered = None
        for _ in range(12):
            if not isinstance(outcome, Short):
                return outcome
            if worker.flying is not None:
                return None
            exchange = worker.ledger.report([outcome], self.now)
            assert exchange is not None
            self.deliver(worker, exchange)
            if exchange.wants:
                answered = answered or exchange.number
            outcome = worker.ledger.reserve(ask, self.now, self.wall, answered=answered)
        msg = f"a call went to the book for ever: {outcome}"
        raise AssertionError(msg)

    def deliver(self, worker: Worker, exchange: Exchange) -> None:
        reply = self.book.exchange(worker.name, exchange)
        worker.folded = self.book.settled(worker.name) or 0
        worker.ledger.take(exchange, reply, self.now)

    @rule(who=st.integers(0, 2), which=st.integers(0, 50), part=st.floats(0, 1), over=st.integers(0, 20))
    def end(self, who: int, which: int, part: float, over: int) -> None:
        worker = self.workers[who]
        if worker.open:
            made = worker.open.pop(which % len(worker.open))
            extra = min(over, self.most_used)
            made.tokens, made.money = (int(amount * part) + extra for amount in (made.tokens, made.money))
            assert worker.ledger.settle(made.grant, made.tokens, made.money)
            assert not worker.ledger.settle(made.grant, 10, 10)
            made.settled = True
            worker.ended.append((made, made.money))

    @rule(who=st.integers(0, 2), which=st.integers(0, 50))
    def release(self, who: int, which: int) -> None:
        worker = self.workers[who]
        if worker.open:
            made = worker.open.pop(which % len(worker.open))
            assert worker.ledger.release(made.grant)
            self.made.remove(made)
            worker.ended.append((made, 0))

    @rule(who=st.integers(0, 2), key=st.sampled_from(KEYS), money=AMOUNTS, done=st.booleans())
    def call_lost(self, who: int, key: str, money: int, done: bool) -> None:
        """The connection to the book breaks while a call waits, before the book has done what it asked, or after."""
        worker = self.workers[who]
        if worker.flying is not None:
            return
        ask = Ask(self.callers[key], TaskId("t1"), 1, MicroUsd(money))
        outcome = worker.ledger.reserve(ask, self.now, self.wall)
        if isinstance(outcome, Grant):
            worker.ledger.release(outcome)
            worker.ended.append((Made(key, "t1", 0, 0, "", self.now, outcome), 0))
        elif isinstance(outcome, Short):
            exchange = worker.ledger.report([outcome], self.now)
            assert exchange is not None
            self.lose(worker, exchange, done=done)

    def lose(self, worker: Worker, exchange: Exchange, *, done: bool) -> None:
        if done:
            self.book.exchange(worker.name, exchange)
            worker.folded = self.book.settled(worker.name) or 0
        worker.ledger.lost(exchange)

    @rule(who=st.integers(0, 2), done=st.booleans())
    def report_lost(self, who: int, done: bool) -> None:
        """The connection to the book breaks, before it has done what it was told, or after."""
        worker = self.workers[who]
        exchange = None if worker.flying else worker.ledger.report([], self.now)
        if exchange is not None:
            self.lose(worker, exchange, done=done)

    @rule(who=st.integers(0, 2))
    def report_sent(self, who: int) -> None:
        """The book has it, and the answer is on its way while calls go on."""
        worker = self.workers[who]
        exchange = None if worker.flying else worker.ledger.report([], self.now)
        if exchange is not None:
            worker.flying = (exchange, self.now)
            worker.answer = self.book.exchange(worker.name, exchange)
            worker.folded = self.book.settled(worker.name) or 0

    @rule(who=st.integers(0, 2))
    def report_answered(self, who: int) -> None:
        worker = self.workers[who]
        if worker.flying is not None and worker.answer is not None:
            exchange, sent = worker.flying
            worker.ledger.take(exchange, worker.answer, sent)
            worker.flying = worker.answer = None

    @rule(who=st.integers(0, 2))
    def killed(self, who: int) -> None:
        """What it had not told is known from what it had written: ends it had not reported, and calls it had open."""
        worker = self.workers[who]
        charges: dict[str, int] = {}
        unreported = [(made, money, 1 if made.settled else 0) for made, money in worker.ended[worker.folded :]]
        for made, money, calls in [*unreported, *((made, made.money, 1) for made in worker.open)]:
            for name, amount in (
                (f"key:{made.key}/money/{made.day}", money),
                (f"tenant:t/money/{made.day}", money),
                (f"task:t:{made.task}/money/task", money),
                (f"task:t:{made.task}/calls/task", calls),
            ):
                charges[name] = charges.get(name, 0) + amount
        assert self.book.leave(worker.name, charges)
        assert not self.book.leave(worker.name, charges)
        for made in worker.open:
            made.settled = True
        self.workers[who] = self.worker()

    @rule(seconds=st.sampled_from((0.3, 0.9, 1.1, 7.0, 25.0)))
    def time(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds
        if seconds > 2:  # who lives is heard of more often than the lease of concurrency runs out
            for who, worker in enumerate(self.workers):
                self.report_answered(who)
                exchange = worker.ledger.report([], self.now)
                if exchange is not None:
                    self.deliver(worker, exchange)

    @rule(seconds=st.sampled_from((-400.0, -5.0, 5.0, 400.0)))
    def clock_is_set(self, seconds: float) -> None:
        self.wall += seconds

    @rule(who=st.integers(0, 2))
    def sweep(self, who: int) -> None:
        self.workers[who].ledger.sweep(self.now)

    # --- what always holds

    @invariant()
    def no_limit_is_passed(self) -> None:
        if self.most_used:
            return
        for day in {made.day for made in self.made}:
            today = [made for made in self.made if made.day == day]
            assert sum(made.money for made in today) <= TENANT_DAY
            assert all(sum(made.money for made in today if made.key == key) <= DAY for key in KEYS)
        for task in TASKS:
            assert sum(made.money for made in self.made if made.task == task) <= TASK_MONEY
            assert sum(made.task == task for made in self.made) <= TASK_CALLS
        for key in KEYS:
            recent = [made for made in self.made if made.key == key and made.at > self.now - 60]
            assert len(recent) <= REQUESTS
            assert sum(made.tokens for made in recent) <= TOKENS
            assert sum(not made.settled for made in self.made if made.key == key) <= AT_ONCE

    def teardown(self) -> None:
        """When all have told all, the book knows exactly what was used, and nothing is held."""
        for who, worker in enumerate(self.workers):
            self.report_answered(who)
            for made in worker.open:
                worker.ledger.settle(made.grant, made.tokens, made.money)
        for _ in range(4):
            self.now += 2
            for worker in self.workers:
                exchange = worker.ledger.report([], self.now)
                if exchange is not None:
                    self.deliver(worker, exchange)
        for key in KEYS:
            for day in {made.day for made in self.made}:
                (use,) = self.book.uses((f"key:{key}/money/{day}",))
                assert use.used == sum(made.money for made in self.made if (made.key, made.day) == (key, day))
                assert use.held == 0
        for task in TASKS:
            calls, money = self.book.uses((f"task:t:{task}/calls/task", f"task:t:{task}/money/task"))
            assert calls.used == sum(made.task == task for made in self.made)
            assert money.used == sum(made.money for made in self.made if made.task == task)
            assert calls.held == money.held == 0


class Overrunning(Interleaving):
    """As above, and calls use more than they reserved: limits are passed by that, and every use is still known."""

    @property
    def most_used(self) -> int:
        return 20


QUICK = settings(max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestInterleaving = Interleaving.TestCase
TestInterleaving.settings = QUICK
TestOverrunning = Overrunning.TestCase
TestOverrunning.settings = QUICK
