"""A process that is to be killed: it pays 100 times, by a scatter, and says so after each.

python paying.py FOLDER
"""

import asyncio
import os
import sys
from pathlib import Path

from headway.core.task import TaskId
from headway.runtime import GroupedLedger, Paid, Run, Runtime, SqliteTable, task

FOLDER = Path(sys.argv[1])
TASK = TaskId("a" * 32)


async def pay(run: Run, number: int) -> int:
    """Pay once for ``number``, by a line in a file."""

    async def make() -> Paid:
        await asyncio.sleep(0.001 * (number % 7))
        file = os.open(FOLDER / "paid", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, f"{number}\n".encode())
        os.close(file)
        return Paid(number)

    value = await run.once("pay", number, make, int)
    os.write(1, b"paid\n")
    return value


@task()
async def pays(run: Run) -> int:
    """Pay for all."""
    return sum(await run.map(pay, range(100), limit=8))


async def main() -> None:
    """Start the task, or take it up again."""
    async with GroupedLedger(SqliteTable(FOLDER / "ledger.db")) as ledger, Runtime(ledger=ledger) as runtime:
        total = await runtime.resume(TASK, pays)
    os.write(1, f"sum {total}\n".encode())


asyncio.run(main())
