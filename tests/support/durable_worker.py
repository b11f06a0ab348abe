"""A worker that is to be killed: its tasks pay 100 times each, by a scatter, and say so after each.

python durable_worker.py WHERE SCHEMA FOLDER TASKS: starts so many tasks, and ends when there are no more to be done.
Half of each task waits until there is a file ``go`` in the folder.
"""

import asyncio
import os
import sys
from pathlib import Path

from headway.runtime import DbosEngine, GroupedLedger, Paid, Run, Runtime, SqliteTable, task

WHERE, SCHEMA, FOLDER, TASKS = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])

HALF = 50


async def pay(run: Run, number: int) -> int:
    """Pay once for ``number``, by a line in a file."""

    async def make() -> Paid:
        while number >= HALF and not (FOLDER / "go").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        file = os.open(FOLDER / "paid", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{run.id}/{number}\n".encode())
        os.close(file)
        return Paid(number)

    value = await run.once("pay", number, make, int)
    os.write(1, b"paid\n")
    return value


@task()
async def pays(run: Run) -> int:
    """Pay for all."""
    return sum(await run.map(pay, range(100), limit=2))


async def main() -> None:
    """Work until nothing is left."""
    where = WHERE if "://" in WHERE else Path(WHERE)
    async with (
        GroupedLedger(SqliteTable(FOLDER / "ledger.db")) as ledger,
        Runtime(ledger=ledger) as runtime,
        DbosEngine(where, runtime, [pays], schema=SCHEMA) as engine,
    ):
        os.write(1, b"ready\n")
        for _ in range(TASKS):
            await engine.start(pays)
        while any(one.state == "running" for one in await engine.list()):  # noqa: ASYNC110 - others' tasks too
            await asyncio.sleep(0.05)
        for standing in await engine.list():
            os.write(1, f"sum {await engine.result(standing.id)}\n".encode())


asyncio.run(main())
