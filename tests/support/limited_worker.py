"""A worker under limits, as a process of its own: says on standard output what it does, until a limit stops it.

It says ``ready`` and begins when it is told a line. ``B id money``: a call of this reservation may be made; ``S id
money``: it is about to be settled at that; ``D id``: it is settled.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.clock import SystemClock
from headway.core.limits import CallerLimits, Limit
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.gateway.access_file import AccessFile
from headway.gateway.book_redis import RedisBook
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.limiter import Limiter
from headway.policy.limits.book import Book
from headway.policy.limits.grant import Ask, Grant


def open_book(store: str) -> Book:
    """The book that a test's argument names: a file, or a prefix in a Redis."""
    if store.startswith("redis"):
        url, _, prefix = store.partition("#")
        return RedisBook(url, prefix=prefix)
    return SqliteBook(AccessFile(Path(store), patience=20.0))


def say(*words: object) -> None:
    """In one write, so that it is said wholly or not at all."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def work(limiter: Limiter, caller: Caller, name: str, dice: random.Random) -> None:
    """Make calls until the budget is used, waiting while others have reserved what is left."""
    number = 0
    while True:
        number += 1
        money = dice.randint(50, 150)
        outcome = await limiter.admit(Ask(caller, TaskId("t"), 0, MicroUsd(money)))
        if not isinstance(outcome, Grant):
            if outcome.why == "used":
                return
            await asyncio.sleep(0.1)
            continue
        say("B", f"{name}.{number}", money)
        await asyncio.sleep(0)
        used = dice.randint(0, money)
        say("S", f"{name}.{number}", used)
        limiter.settle(outcome, None, used)
        say("D", f"{name}.{number}")


async def main(store: str, intents: str, limit: int, seed: int) -> None:
    """Four callers at once, all with one key."""
    key = Key(
        id=KeyId("k"),
        tenant=TenantId("t"),
        prefix="",
        created=0.0,
        limits=CallerLimits(money_per_month=Limit(limit)),
    )
    caller = Caller(key, Tenant(id=TenantId("t")))
    limiter = Limiter(open_book(store), Path(intents), SystemClock(), wall=lambda: 1_796_040_000.0)
    await limiter.start()
    say("ready")
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(work(limiter, caller, f"{seed}.{one}", random.Random(seed * 4 + one)) for one in range(4)))
    await limiter.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
