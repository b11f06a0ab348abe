"""Stores that go away under a gateway at work and come back, a full disk, clocks that step, replicas that come and go.

Nothing crashes, every refusal says why, and no budget is lost or doubled.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from house import ME, PRICES
from own_postgres import OwnPostgres
from own_redis import OwnRedis
from serving import Raw, Served, chat, serving

from headway.core.access import Tenant, TenantId
from headway.core.clock import SystemClock
from headway.core.config import Limits
from headway.core.fleet import ReplicaId
from headway.core.limits import CallerLimits, Limit
from headway.core.span import ModelCall
from headway.core.usage import Usage
from headway.gateway.access import Access
from headway.gateway.access_file import AccessFile
from headway.gateway.book_redis import RedisBook
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.door import Door
from headway.gateway.fake import FakeEngine, Reply
from headway.gateway.keys import KeySettings, create_key, create_tenant, revoke_key
from headway.gateway.limiter import Limiter
from headway.gateway.registry import Registry, SqliteDatabase
from headway.gateway.registry_postgres import PostgresDatabase
from headway.gateway.retrying import Retrying
from headway.gateway.tariff import Tariff
from headway.gateway.wiring import Passes
from headway.policy.limits.book import Book
from headway.policy.limits.periods import counter_name
from headway.policy.resend.retry import RetryRules
from headway.trace.record import Recorder
from headway.trace.store import Store

USAGE = Usage(input_tokens=10, output_tokens=5)
USED = 10 * 1 + 5 * 2
"""Of a call, in micro-USD, by `PRICES`."""
NOW = 1_796_040_000.0


def answers(_: object) -> Reply:
    return Reply(content="done", usage=USAGE)


@asynccontextmanager
async def door(
    registry: Registry, book: Book, intents: Path, *, wall: Callable[[], float] = lambda: NOW
) -> AsyncGenerator[Door]:
    clock = SystemClock()
    opened = Door(
        Access(registry, clock, wall=wall),
        Limiter(book, intents, clock, wall=wall),
        Tariff(PRICES, frozenset[str]()),
        clock,
    )
    await opened.start()
    try:
        yield opened
    finally:
        await opened.close()


def with_tenant(registry: Registry, dollars: float = 100.0) -> str:
    """A key of a tenant that may use so much a day."""
    limits = CallerLimits(money_per_day=Limit(int(dollars * 1_000_000)))
    create_tenant(registry, Tenant(id=TenantId("acme"), limits=limits), ME)
    return create_key(registry, "acme", KeySettings(), ME).secret


async def ask(served: Served, key: str) -> Raw:
    return await served.ask(chat(f"authorization: Bearer {key}\r\n", max_tokens=50))


def day(wall: float = NOW) -> str:
    return counter_name("tenant", "acme", "money", "day", wall)


@pytest.mark.parametrize("killed", [False, True])
async def test_redis_with_the_limits_goes_and_comes_back_and_every_call_is_charged_once(
    tmp_path: Path, killed: bool
) -> None:
    registry = Registry(SqliteDatabase(AccessFile(tmp_path / "access.db")))
    key = with_tenant(registry)
    statuses = Counter[int]()
    async with OwnRedis(tmp_path) as redis:
        async with (
            door(registry, RedisBook(redis.url), tmp_path / "intents") as opened,
            FakeEngine(answers) as engine,
            serving(engine, door=opened) as served,
        ):

            async def calls(count: int) -> None:
                for _ in range(count):
                    answer = await ask(served, key)
                    statuses[answer.status] += 1
                    if answer.status != 200:
                        assert answer.error["code"] == "limits_unavailable"
                        assert "Redis, which holds the limits, cannot be used" in answer.error["message"]
                        assert answer.headers["retry-after"] == "5"

            await calls(10)
            for _ in range(2):
                working = asyncio.create_task(calls(60))
                await redis.stop(killed=killed)
                await calls(5)
                await redis.start()
                await working
            async with asyncio.timeout(10):
                while (await ask(served, key)).status != 200:
                    pass
            statuses[200] += 1
        book = RedisBook(redis.url)
        (use,) = book.uses((day(),))
        book.close()
    assert (use.used, use.held) == (statuses[200] * USED, 0)
    assert len(engine.requests) == statuses[200], "what was refused was asked of nobody"


async def test_a_redis_that_lost_its_memory_is_told_anew_and_calls_go_on(tmp_path: Path) -> None:
    registry = Registry(SqliteDatabase(AccessFile(tmp_path / "access.db")))
    key = with_tenant(registry)
    async with OwnRedis() as redis:
        async with (
            door(registry, RedisBook(redis.url), tmp_path / "intents") as opened,
            FakeEngine(answers) as engine,
            serving(engine, door=opened) as served,
        ):
            assert (await ask(served, key)).status == 200
            await redis.stop()
            await redis.start()
            book = RedisBook(redis.url)
            async with asyncio.timeout(10):
                while not (await asyncio.to_thread(book.uses, (day(),)))[0].used:
                    assert (await ask(served, key)).status in {200, 503}
        (use,) = book.uses((day(),))
        book.close()
    assert use.held == 0
    assert use.used <= len(engine.requests) * USED


async def test_postgres_with_the_keys_goes_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with OwnPostgres() as postgres:
        registry = await asyncio.to_thread(lambda: Registry(PostgresDatabase(postgres.url)))
        key = with_tenant(registry)
        book = SqliteBook(AccessFile(tmp_path / "use.db"))
        async with (
            door(registry, book, tmp_path / "intents") as opened,
            FakeEngine(answers) as engine,
            serving(engine, door=opened) as served,
        ):
            assert (await ask(served, key)).status == 200
            await postgres.stop(killed=True)
            for _ in range(3):
                await opened.access.refreshed()
                assert (await ask(served, key)).status == 200, "keys that are known are served"
                assert (await ask(served, "sk-hw-guessed")).status == 401
            assert caplog.text.count("Until then keys stay as they were") == 1
            await postgres.start()
            await opened.access.refreshed()
            other = await asyncio.to_thread(lambda: Registry(PostgresDatabase(postgres.url)))
            assert [record.count for record in other.audited(9) if record.action == "key.unknown"] == [3]
            revoke_key(other, other.keys("acme")[0].id, ME)
            other.close()
            await opened.access.refreshed()
            answer = await ask(served, key)
            assert (answer.status, "was revoked" in answer.error["message"]) == (401, True)
    assert "Traceback" not in caplog.text


@contextmanager
def disk_full_at(size: int) -> Generator[None]:
    """No file of this process may grow beyond ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_costs_spans_and_no_call_and_what_waits_is_written_once_there_is_room(tmp_path: Path) -> None:
    file = tmp_path / "spans.db"
    async with FakeEngine(answers) as engine:
        with Store(file) as store, Recorder(store, capacity=50, interval=0.01, backoff=0.01) as recorder:
            async with serving(engine, recorder=recorder) as served:
                assert (await served.ask(chat())).status == 200
                await asyncio.to_thread(recorder.flush)
                with disk_full_at(4096):
                    for _ in range(200):
                        assert (await served.ask(chat())).status == 200
                    page = (await served.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")).body.decode()
                    assert "\nheadway_spans_recorded_total 1\n" in page
                assert await asyncio.to_thread(recorder.flush)
                assert recorder.recorded + recorder.dropped == 201
                assert recorder.dropped >= 100, "no more than what waits and what is being written is kept"
            assert len(store.tasks(1000)) == recorder.recorded > 1


async def use_up(served: Served, key: str) -> int:
    """Calls that were answered until one was refused for good."""
    answered = 0
    async with asyncio.timeout(20):
        while True:
            answer = await served.ask(chat(f"authorization: Bearer {key}\r\n", max_tokens=5))
            if answer.status == 200:
                answered += 1
                continue
            assert answer.error["code"] == "money_limit", answer.body
            if answer.headers.get("retry-after") != "1":
                return answered


@pytest.mark.parametrize("step", [-86_400.0, -3_600.0, 3_600.0, 86_400.0])
async def test_a_wall_clock_that_steps_frees_nothing_that_was_used(tmp_path: Path, step: float) -> None:
    registry = Registry(SqliteDatabase(AccessFile(tmp_path / "access.db")))
    limit = 20 * USED
    key = with_tenant(registry, limit / 1_000_000)
    wall = [NOW]
    book = SqliteBook(AccessFile(tmp_path / "access.db"))
    async with (
        door(registry, book, tmp_path / "intents", wall=lambda: wall[0]) as opened,
        FakeEngine(answers) as engine,
        serving(engine, door=opened) as served,
    ):
        first = await use_up(served, key)
        wall[0] = NOW + step
        elsewhere = await use_up(served, key)
        wall[0] = NOW
        assert await use_up(served, key) == 0, "coming back to a day comes upon what was used in it"
    assert 0 < first * USED <= limit
    assert (elsewhere == 0) is (day(NOW + step) == day(NOW))
    again = SqliteBook(AccessFile(tmp_path / "access.db"))
    now, then = again.uses((day(NOW), day(NOW + step)))
    again.close()
    assert (now.used, now.held, then.held) == (first * USED, 0, 0)
    assert then.used <= limit


async def test_replicas_that_come_and_go_leave_every_call_answered_or_explained() -> None:
    async with FakeEngine(answers) as one, FakeEngine(answers) as two:
        passes = Passes(retries=Retrying(RetryRules(base=0.01, cap=0.05)))
        async with serving(one, two, passes=passes, limits=Limits(connect_seconds=1)) as served:
            over = asyncio.Event()
            statuses, codes = Counter[int](), Counter[str]()

            async def caller() -> None:
                while not over.is_set():
                    answer = await served.ask(chat())
                    statuses[answer.status] += 1
                    if answer.status != 200:
                        codes[answer.error["code"]] += 1
                        assert answer.error["message"]

            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(caller())
                for _ in range(8):
                    for engine, name in ((one, "r0"), (two, "r1")):
                        await engine.go_down()
                        seen = sum(statuses.values())
                        while sum(statuses.values()) < seen + 5:
                            await served.ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
                        await engine.come_up()
                        served.gateway.fleet.mark(ReplicaId(name), healthy=True, reason="probed")
                over.set()
            assert statuses[200] > 0
            assert set(codes) <= {"upstream_connect", "upstream_closed", "no_replica"}
            spans = await served.spans(sum(statuses.values()))
            ok = [span for span in spans if isinstance(span.work, ModelCall) and span.error is None]
            assert len(ok) == statuses[200]
