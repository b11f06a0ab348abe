"""Limits at work: over a real file and real intents, and when disk, book or caller fail."""

import asyncio
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.clock import SystemClock
from headway.core.errors import StoreError
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.gateway.access_file import AccessFile
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.limiter import Limiter, bury_the_dead
from headway.policy.limits.book import Exchange, Reply, Use
from headway.policy.limits.counter import Warned
from headway.policy.limits.grant import Ask, Grant, Short
from headway.policy.limits.memory_book import MemoryBook
from headway.policy.limits.refused import Refused

NOON = 1_796_040_000.0
DAY = "key:k/money/2026-11-30"


def caller(limits: CallerLimits | None = None, task: TaskLimits | None = None) -> Caller:
    key = Key(
        id=KeyId("k"),
        tenant=TenantId("t"),
        prefix="",
        created=0.0,
        limits=limits or CallerLimits(money_per_day=Limit(1000, warn=800)),
        task=task or TaskLimits(),
    )
    return Caller(key, Tenant(id=TenantId("t")))


def ask(money: int, who: Caller | None = None) -> Ask:
    return Ask(who or caller(), TaskId("x"), 0, MicroUsd(money))


class FailingBook(MemoryBook):
    """A book whose connection breaks when told to."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.broken = False

    def exchange(self, holder: str, exchange: Exchange) -> Reply:
        if self.broken:
            raise StoreError("The book is away.", fix="Wait.")
        return super().exchange(holder, exchange)

    def settled(self, holder: str) -> int | None:
        if self.broken:
            raise StoreError("The book is away.", fix="Wait.")
        return super().settled(holder)


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.intents = folder / "intents"
        self.warned: list[Warned] = []

    def book(self) -> SqliteBook:
        return SqliteBook(AccessFile(self.folder / "access.db"))

    async def started(self, book: MemoryBook | SqliteBook | None = None) -> Limiter:
        limiter = Limiter(book or self.book(), self.intents, SystemClock(), wall=lambda: NOON, warn=self.warned.append)
        await limiter.start()
        return limiter

    def use(self) -> Use:
        book = self.book()
        try:
            return book.uses((DAY,))[0]
        finally:
            book.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def limiter(place: Place) -> AsyncGenerator[Limiter]:
    limiter = await place.started()
    yield limiter
    await limiter.close()


@contextmanager
def disk_full_at(size: int) -> Generator[None]:
    """No file of this process may grow beyond ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def granted(limiter: Limiter, money: int, who: Caller | None = None) -> Grant:
    outcome = await limiter.admit(ask(money, who))
    assert isinstance(outcome, Grant), outcome
    return outcome


async def test_what_was_used_is_known_to_the_next_worker(place: Place) -> None:
    first = await place.started()
    first.settle(await granted(first, 600), None, 550)
    first.release(await granted(first, 400))
    await first.close()
    assert place.use() == Use(550, 0)
    second = await place.started()
    refused = await second.admit(ask(451))
    assert isinstance(refused, Refused)
    assert (refused.why, refused.used) == ("used", 550)
    await second.close()
    assert not list(place.intents.iterdir())


async def test_a_second_reservation_needs_no_book(limiter: Limiter) -> None:
    assert isinstance(limiter.reserve(ask(10)), Short)
    await granted(limiter, 10)  # and a sixteenth of what was left came with it
    assert isinstance(limiter.reserve(ask(10)), Grant)


async def test_calls_that_are_cut_off_are_charged_as_reserved(place: Place) -> None:
    limiter = await place.started()
    await granted(limiter, 600)
    await limiter.close()
    assert place.use() == Use(600, 0)


async def test_many_at_once_share_what_there_is(limiter: Limiter) -> None:
    outcomes = await asyncio.gather(*(limiter.admit(ask(90)) for _ in range(30)))
    assert sum(isinstance(outcome, Grant) for outcome in outcomes) == 11


async def test_who_stops_waiting_leaves_nothing_reserved(limiter: Limiter) -> None:
    waits = [asyncio.create_task(limiter.admit(ask(1000))) for _ in range(5)]
    await asyncio.sleep(0)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    await granted(limiter, 1000)


async def test_a_warning_is_told_once_by_all_workers_together(place: Place) -> None:
    first, second = await place.started(), await place.started()
    first.settle(await granted(first, 850), None, 850)
    second.settle(await granted(second, 50), None, 50)
    await first.close()
    await second.close()
    assert [(one.owner, one.warn, one.stop) for one in place.warned] == [("key k", 800, 1000)]


async def test_a_task_is_warned_and_stopped(place: Place) -> None:
    limiter = await place.started()
    who = caller(CallerLimits(), TaskLimits(calls=Limit(2), seconds=Limit(600, warn=0)))
    for _ in range(2):
        limiter.settle(await granted(limiter, 0, who), None, None)
    refused = await limiter.admit(ask(0, who))
    assert isinstance(refused, Refused)
    assert (refused.owner, refused.measure) == ("task x", "calls")
    await limiter.close()
    assert [(one.measure, one.stop) for one in place.warned] == [("seconds", 600)]


async def test_no_room_to_write_it_down_means_no_call(place: Place) -> None:
    limiter = await place.started()
    limiter.settle(await granted(limiter, 10), None, 10)
    (file,) = place.intents.glob("*.intents")
    with disk_full_at(file.stat().st_size + 20), pytest.raises(StoreError, match="Free disk space"):
        limiter.reserve(ask(10))
    assert isinstance(limiter.reserve(ask(10)), Grant)
    await limiter.close()
    assert place.use() == Use(20, 0)


async def test_no_room_to_settle_keeps_the_reservation_until_there_is(place: Place) -> None:
    limiter = await place.started()
    grant = await granted(limiter, 700)
    (file,) = place.intents.glob("*.intents")
    with disk_full_at(file.stat().st_size):
        limiter.settle(grant, None, 100)
        limiter.settle(grant, None, 100)
    assert not grant.ended
    limiter.settle(grant, None, 100)
    assert grant.ended
    await limiter.close()
    assert place.use() == Use(100, 0)


async def test_a_book_that_is_away_refuses_and_loses_nothing(tmp_path: Path) -> None:
    place, book = Place(tmp_path), FailingBook()
    limiter = await place.started(book)
    grant = await granted(limiter, 100)
    book.broken = True
    limiter.settle(grant, None, 60)
    with pytest.raises(StoreError, match="away"):
        await limiter.admit(ask(900))
    book.broken = False
    await granted(limiter, 900)
    await limiter.close()
    assert book.uses((DAY,)) == (Use(960, 0),)


async def test_a_book_that_forgot_the_worker_is_joined_again(tmp_path: Path) -> None:
    place, book = Place(tmp_path), FailingBook()
    limiter = await place.started(book)
    limiter.settle(await granted(limiter, 100), None, 60)
    assert book.leave(limiter.holder, {})
    await granted(limiter, 900)
    await limiter.close()


async def test_a_worker_whose_book_is_away_at_the_end_is_looked_after_by_the_next(tmp_path: Path) -> None:
    place, book = Place(tmp_path), FailingBook()
    limiter = await place.started(book)
    await granted(limiter, 70)
    limiter.settle(await granted(limiter, 100), None, 60)
    book.broken = True
    await limiter.close()
    book.broken = False
    assert bury_the_dead(place.intents, book) == 1
    assert book.uses((DAY,)) == (Use(130, 0),)


async def test_a_worker_that_cannot_start_leaves_nothing(place: Place, tmp_path: Path) -> None:
    place.intents.write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="may be written"):
        await place.started(FailingBook())
    place.intents.unlink()
    (tmp_path / "access.db").mkdir()
    with pytest.raises(StoreError, match="cannot be used"):
        await place.started()
    assert not place.intents.exists()
