"""What limits cost a call: reserve and settle on one core, all limits set; a draw from the book; a look at a key."""

import asyncio
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.clock import SystemClock
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.gateway.access import Access
from headway.gateway.access_file import AccessFile
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.keys import Change, KeySettings, create_key, create_tenant
from headway.gateway.limiter import Limiter
from headway.gateway.registry import Registry, SqliteDatabase
from headway.policy.limits.grant import Ask, Grant

_CALLS = 20_000
_MUCH = Limit(10**12, warn=9 * 10**11)
_ALL = CallerLimits(
    requests_per_minute=_MUCH, tokens_per_minute=_MUCH, concurrency=_MUCH, money_per_day=_MUCH, money_per_month=_MUCH
)
_TASK = TaskLimits(calls=_MUCH, tokens=_MUCH, money=_MUCH, seconds=_MUCH)


def caller(limits: CallerLimits, task: TaskLimits) -> Caller:
    """A caller whose key and tenant have the same limits."""
    key = Key(id=KeyId("k"), tenant=TenantId("t"), prefix="", created=0.0, limits=limits, task=task)
    return Caller(key, Tenant(id=TenantId("t"), limits=limits))


async def reservation(name: str, who: Caller, *, durable: bool) -> None:
    """CPU of a reservation and of its settlement, and of an exchange with the book."""
    with tempfile.TemporaryDirectory() as folder:
        book = SqliteBook(AccessFile(Path(folder) / "access.db"))
        limiter = Limiter(book, Path(folder) / "intents" if durable else None, SystemClock())
        await limiter.start()
        ask = Ask(who, TaskId("x"), 1000, MicroUsd(100))
        best = [float("inf"), float("inf")]
        drawn = float("inf")
        for _ in range(5):
            started = time.process_time()
            limiter.settle(await admitted(limiter, ask), 900, 90)
            drawn = min(drawn, time.process_time() - started)
            grants: list[Grant] = []
            reserving = cpu(partial(_reserve, limiter, ask, grants))
            settling = cpu(partial(_settle, limiter, grants))
            best = [min(best[0], reserving / len(grants)), min(best[1], settling / len(grants))]
            await asyncio.sleep(0.3)
        await limiter.close()
    print(f"{name:<44}{best[0] * 1e6:6.2f} µs reserve {best[1] * 1e6:6.2f} µs settle {drawn * 1e6:7.0f} µs with a draw")


async def admitted(limiter: Limiter, ask: Ask) -> Grant:
    """A grant, drawn from the book if need be."""
    outcome = await limiter.admit(ask)
    if not isinstance(outcome, Grant):
        raise TypeError(outcome)
    return outcome


def _reserve(limiter: Limiter, ask: Ask, grants: list[Grant]) -> None:
    for _ in range(_CALLS // 5):
        outcome = limiter.reserve(ask)
        if not isinstance(outcome, Grant):
            return
        grants.append(outcome)


def _settle(limiter: Limiter, grants: list[Grant]) -> None:
    for grant in grants:
        limiter.settle(grant, 900, 90)


def cpu(work: Callable[[], None]) -> float:
    """CPU seconds of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


async def recognition() -> None:
    """CPU of looking at a key."""
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(SqliteDatabase(AccessFile(Path(folder) / "access.db")))
        me = Change("cli:bench", time.time())
        create_tenant(registry, Tenant(id=TenantId("t")), me)
        made = [create_key(registry, "t", KeySettings(), me) for _ in range(100)]
        access = Access(registry, SystemClock())
        await access.start()
        fields = {b"authorization": b"Bearer " + made[50].secret.encode()}

        def recognise() -> None:
            for _ in range(_CALLS):
                access.recognise(fields, "127.0.0.1")

        best = min(cpu(recognise) for _ in range(5)) / _CALLS
        await access.close()
    print(f"{'a key of 100 recognised':<44}{best * 1e6:6.2f} µs")


async def main() -> None:
    """Print all of it."""
    await reservation("13 limits of key, tenant and task, durable", caller(_ALL, _TASK), durable=True)
    await reservation("13 limits of key, tenant and task, in memory", caller(_ALL, _TASK), durable=False)
    five = CallerLimits(requests_per_minute=_MUCH, tokens_per_minute=_MUCH, money_per_month=_MUCH)
    await reservation("3 of key and tenant each, durable", caller(five, TaskLimits()), durable=True)
    await reservation("no limits", caller(CallerLimits(), TaskLimits()), durable=True)
    await recognition()


if __name__ == "__main__":
    asyncio.run(main())
