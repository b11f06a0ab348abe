"""Answers shared by two workers over a real Redis, and calls that go on while it is slow, gone or lies."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator

import pytest
from caching import Caller, Rig, said
from services import clear_redis, own_name, redis_url

from headway.core.clock import VirtualClock
from headway.core.errors import StoreError
from headway.gateway.caches.outcomes import Given, Ticket, Wait
from headway.gateway.caches.sharing import News, Portable, Sharing
from headway.gateway.caches.store_redis import RedisAnswers
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.labels import Drop
from headway.policy.cache.rules import CacheRule

RULE = CacheRule(name="all", ttl=60.0, stale=30.0)


async def told(caller: Caller) -> Caller:
    """When the caller has been told."""
    async with asyncio.timeout(10):
        await caller.has_been_told.wait()
    return caller


async def ask(rig: Rig, text: str = "why", tenant: str = "acme") -> Caller:
    caller = rig.ask(text, tenant=tenant)
    return await told(caller) if isinstance(caller.outcome, Wait) else caller


class Store:
    """A store in memory whose every answer can be held up or spoilt."""

    def __init__(self) -> None:
        self.answers: dict[CacheKey, tuple[Portable, float]] = {}
        self.open = threading.Event()
        self.open.set()
        self.broken = False

    def _pass(self) -> None:
        assert self.open.wait(10)
        if self.broken:
            raise StoreError("It is gone.")

    def get(self, key: CacheKey) -> tuple[Portable, float] | None:
        self._pass()
        return self.answers.get(key)

    def put(self, key: CacheKey, answer: Portable, seen: str) -> bool:
        self._pass()
        self.answers[key] = (answer, answer.fresh_seconds + answer.stale_seconds)
        return bool(seen)

    def drop(self, labels: frozenset[str]) -> None:
        self._pass()
        self.answers = {key: kept for key, kept in self.answers.items() if labels.isdisjoint(kept[0].labels)}

    def news(self, seen: str) -> News:
        self._pass()
        return News(seen or "1-0", frozenset())

    def close(self) -> None:
        self.open.set()


@pytest.fixture
def prefix() -> Generator[str]:
    redis_url()
    name = own_name()
    yield name
    clear_redis(name)


@pytest.fixture
async def workers(prefix: str) -> AsyncGenerator[tuple[Rig, Rig]]:
    def sharing(clock: VirtualClock) -> Sharing:
        return Sharing(RedisAnswers(redis_url(), prefix=prefix), clock)

    rigs = Rig(RULE, sharing=sharing), Rig(RULE, sharing=sharing)
    for rig in rigs:
        await hear(rig)
    yield rigs
    for rig in rigs:
        await rig.cache.close()


async def hear(rig: Rig) -> None:
    sharing = rig.cache.sharing
    assert sharing is not None
    await sharing.refreshed(rig.cache.dropped)


async def settled(rig: Rig) -> None:
    """Everything that was handed to the store before is done: its thread does one thing after the other."""
    await hear(rig)


async def test_what_one_worker_was_answered_the_other_gives(workers: tuple[Rig, Rig]) -> None:
    one, other = workers
    one.answer((await ask(one)).ticket, "because")
    await settled(one)
    found = await ask(other)
    assert (said(found.given), found.given.how) == ("because", "hit")
    assert isinstance(other.ask().outcome, Given)
    assert other.cache.report().rules["all"].hits == {"shared": 1, "memory": 1}


async def test_two_tenants_share_nothing_there_either(workers: tuple[Rig, Rig]) -> None:
    one, other = workers
    one.answer((await ask(one, tenant="acme")).ticket, "acme's secret")
    await settled(one)
    assert isinstance((await ask(other, tenant="mallory")).told[-1], Ticket)


async def test_what_lies_under_ones_key_with_anothers_name_is_not_given() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock))
    await hear(rig)
    rig.answer((await ask(rig, tenant="acme")).ticket, "acme's secret")
    await settled(rig)
    ((_, kept),) = store.answers.items()
    theirs = rig.ask(tenant="mallory")
    store.answers[theirs.wait.ticket.key] = kept
    assert isinstance((await told(theirs)).told[-1], Ticket)
    await rig.cache.close()


async def test_what_one_worker_drops_the_other_forgets(workers: tuple[Rig, Rig]) -> None:
    one, other = workers
    one.answer((await ask(one)).ticket)
    await settled(one)
    assert isinstance((await ask(other)).told[-1], Given)
    one.cache.drop(Drop(tenant="acme"))
    await hear(one)
    await hear(other)
    assert other.cache.report().memory.entries == 0
    assert isinstance((await ask(other)).told[-1], Ticket)


async def test_what_is_dropped_is_not_taken_from_there_before_the_store_knows() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock))
    await hear(rig)
    rig.answer((await ask(rig)).ticket, "old")
    await settled(rig)
    assert len(store.answers) == 1
    rig.cache.drop(Drop(tenant="acme"))
    assert isinstance(rig.ask().outcome, Ticket)
    await hear(rig)
    assert store.answers == {}
    await rig.cache.close()


async def test_a_drop_is_passed_on_by_itself() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock))
    await hear(rig)
    rig.answer((await ask(rig)).ticket, "old")
    await settled(rig)
    rig.cache.start()
    rig.cache.drop(Drop(tenant="acme"))
    await rig.cache.close()
    assert store.answers == {}


async def test_a_store_that_is_slow_is_not_waited_for() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock), patience=0.02)
    await hear(rig)
    store.open.clear()
    caller, waiting = rig.ask(), rig.ask()
    assert isinstance((await told(caller)).told[-1], Ticket)
    rig.answer(caller.ticket, "because")
    assert said(waiting.given) == "because"
    assert isinstance(rig.ask().outcome, Given)
    store.open.set()
    await rig.cache.close()


async def test_one_that_leaves_while_it_is_looked_for_hands_over() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock))
    await hear(rig)
    store.open.clear()
    first, second = rig.ask(), rig.ask()
    first.wait.leave()
    assert isinstance(second.told[0], Ticket)
    store.open.set()
    rig.answer(second.ticket)
    await settled(rig)
    assert first.told == []
    await rig.cache.close()


async def test_gone_and_back() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock))
    await hear(rig)
    store.broken = True
    assert isinstance((await ask(rig, "one")).told[-1], Ticket)
    assert isinstance(rig.ask("two").outcome, Ticket)  # it is left alone for a second
    report = rig.cache.report().shared
    assert report is not None
    assert (report.up, report.troubles) == (False, 1)
    rig.cache.drop(Drop(tags=("docs",)))
    await hear(rig)
    store.broken = False
    rig.clock.advance(1.5)
    await hear(rig)
    assert isinstance((await ask(rig, "three")).told[-1], Ticket)
    report = rig.cache.report().shared
    assert report is not None
    assert report.up
    await rig.cache.close()


async def test_a_redis_that_nobody_runs_costs_calls_nothing() -> None:
    pytest.importorskip("redis")
    rig = Rig(RULE, sharing=lambda clock: Sharing(RedisAnswers("redis://127.0.0.1:1/0"), clock))
    rig.cache.start()
    caller = await ask(rig)
    rig.answer(caller.ticket)
    assert isinstance(rig.ask().outcome, Given)
    await rig.cache.close()


async def test_too_much_at_once_goes_on_without() -> None:
    store = Store()
    rig = Rig(RULE, sharing=lambda clock: Sharing(store, clock), patience=0.01)
    await hear(rig)
    store.open.clear()
    outcomes = [rig.ask(f"question {number}").outcome for number in range(300)]
    assert sum(isinstance(outcome, Ticket) for outcome in outcomes) == 300 - 256
    store.open.set()
    await rig.cache.close()
