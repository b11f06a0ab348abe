import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random

import pytest
from services import own_schema, postgres_url

from headway.core.errors import BadInputError, InDoubtError, StoreError
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.runtime import Amount, Budget, GroupedLedger, Paid, PostgresTable, Row, Run, Runtime, SqliteTable, task
from headway.runtime.ledger import Table

TASK = TaskId("a" * 32)
COST = Amount(money=MicroUsd(10), calls=1)
SCRIPT = Path(__file__).parents[1] / "support" / "paying.py"


@pytest.fixture(params=["sqlite", "postgres"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Table]:
    if request.param == "sqlite":
        yield SqliteTable(tmp_path / "l.db")
        return
    url = postgres_url()
    with own_schema(url) as schema:
        yield PostgresTable(url, schema)


async def test_what_is_written_is_read_and_the_last_word_counts(table: Table) -> None:
    async with GroupedLedger(table) as ledger:
        rows = [Row(key=f"k{number}", state="intent", amount=COST) for number in range(100)]
        await asyncio.gather(*(ledger.write(TASK, row) for row in rows))
        done = Row(key="k0", state="done", amount=COST, value=b"\x00x")
        await ledger.write(TASK, done)
        await ledger.write(TaskId("another"), rows[1])
        assert sorted(await ledger.rows(TASK), key=lambda row: row.key) == sorted(
            [done, *rows[1:]], key=lambda r: r.key
        )
    with pytest.raises(StoreError, match="closed"):
        await ledger.write(TASK, done)


async def test_a_task_of_many_calls_with_large_results_is_taken_up_whole(tmp_path: Path) -> None:
    """Elsewhere a limit on a run's history ended it at 53 of 100 calls (temporalio/sdk-python#1890)."""
    made = 0

    async def item(run: Run, number: int) -> int:
        async def make() -> Paid:
            nonlocal made
            made += 1
            return Paid("x" * 200_000)

        return len(await run.once("m", number, make, str))

    @task()
    async def large(run: Run) -> int:
        return sum(await run.map(item, range(300)))

    for _ in range(2):
        async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
            assert await runtime.resume(TASK, large) == 300 * 200_000
    assert made == 300


class Refusing:
    """A table that cannot be written at first."""

    def __init__(self, *, busy: bool) -> None:
        self.groups: list[int] = []
        self.error: Exception | None = None
        self.busy = busy

    def read(self, task: TaskId) -> list[bytes]:
        del task
        return []

    def write(self, rows: Sequence[tuple[TaskId, str, bytes]], *, wait: bool) -> bool:
        if self.busy and not wait:
            return False
        self.groups.append(len(rows))
        if self.error is not None:
            raise self.error
        return True

    def close(self) -> None:
        """Holds nothing."""


@pytest.mark.parametrize("busy", [False, True])
async def test_calls_at_once_share_commits_and_hear_of_what_fails(busy: bool) -> None:
    refusing = Refusing(busy=busy)
    row = Row(key="k", state="intent", amount=COST)
    async with GroupedLedger(refusing) as ledger:
        await asyncio.gather(*(ledger.write(TASK, row) for _ in range(200)))
        assert sum(refusing.groups) == 200
        assert len(refusing.groups) < 100
        for error in (StoreError("full"), ValueError("odd")):
            refusing.error = error
            with pytest.raises(StoreError, match=r"full|odd"):
                await ledger.write(TASK, row)
        refusing.error = None
        await ledger.write(TASK, row)


async def test_who_cannot_write_at_once_waits_for_the_other_process(tmp_path: Path) -> None:
    row = Row(key="k", state="intent", amount=COST)
    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger:
        other = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(ledger.write(TASK, row))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not writing.done()
        other.execute("COMMIT")
        other.close()
        await writing
        assert await ledger.rows(TASK) == [row]


def test_a_file_of_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(BadInputError, match="no ledger"):
        SqliteTable(path)
    (tmp_path / "text").write_text("no database, and longer than a header of one" * 10)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteTable(tmp_path / "text")
    with pytest.raises(StoreError, match="cannot be made"):
        SqliteTable(tmp_path / "text" / "below")


async def test_a_task_that_is_taken_up_again_pays_nothing_twice_and_keeps_its_budget(tmp_path: Path) -> None:
    made: list[int] = []
    broken = True

    async def item(run: Run, number: int) -> int:
        async def make() -> Paid:
            made.append(number)
            return Paid(number * number, COST)

        if broken and number == 7:
            raise OSError("killed here")
        return await run.once("m", number, make, int, most=COST)

    @task(budget=Budget(usd="0.0001 USD"))
    async def squares(run: Run) -> list[int]:
        return await run.map(item, range(10), limit=1)

    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        with pytest.raises(Exception, match="killed here"):
            await runtime.resume(TASK, squares)
    broken = False
    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        started = runtime.resume(TASK, squares)
        assert await started == [number * number for number in range(10)]
        assert started.spent == Amount(money=MicroUsd(100), calls=10)
    assert made == list(range(10))


async def test_what_failed_attempts_cost_is_known_after_a_crash(tmp_path: Path) -> None:
    made: list[str] = []

    async def make() -> Paid:
        made.append("made")
        if len(made) < 3:
            raise OSError("the stream broke")
        return Paid("ok", COST)

    async def item(run: Run, _: int) -> str:
        return await run.once("read", 1, make, str, most=COST)

    @task()
    async def body(run: Run) -> list[str]:
        return await run.map(item, [1], retries=2)

    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        started = runtime.resume(TASK, body)
        assert await started == ["ok"]
        again = runtime.resume(TASK, body)
        assert await again == ["ok"]
    assert started.spent == again.spent == COST + COST + COST
    assert len(made) == 3


async def test_a_call_under_way_at_a_crash_is_seen_and_made_again_only_where_it_may_be(tmp_path: Path) -> None:
    """Elsewhere what had side effects was repeated after a crash (langgraph#8039, langgraph#8234)."""
    made: list[str] = []
    kill = True

    async def make() -> Paid:
        made.append("made")
        if kill:
            raise asyncio.CancelledError
        return Paid("ok", COST)

    @task()
    async def repeats(run: Run) -> str:
        return await run.once("read", 1, make, str, most=COST)

    @task()
    async def never(run: Run) -> str:
        return await run.once("charge a card", 1, make, str, most=COST, again="never")

    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        for name, work in (("r", repeats), ("n", never)):
            with pytest.raises(asyncio.CancelledError):
                await runtime.resume(TaskId(name), work)
            assert [row.state for row in await ledger.rows(TaskId(name))] == ["intent"]
    kill = False
    async with GroupedLedger(SqliteTable(tmp_path / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        again = runtime.resume(TaskId("r"), repeats)
        assert await again == "ok"
        assert again.spent.calls == 2
        assert len(again.in_doubt) == 1
        with pytest.raises(InDoubtError, match="charge a card was under way"):
            await runtime.resume(TaskId("n"), never)
    assert len(made) == 3


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_in_the_middle_of_a_scatter_pays_nothing_twice_and_loses_nothing(seed: int, tmp_path: Path) -> None:
    """The child pays into a file of its own, so what it paid is known whatever its ledger says."""
    dice = Random(seed)
    kill_after = dice.randrange(1, 100)
    child = subprocess.Popen([sys.executable, SCRIPT, str(tmp_path)], stdout=subprocess.PIPE)  # noqa: S603 - our own
    assert child.stdout is not None
    for _ in range(kill_after):
        assert child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    paid_before = (tmp_path / "paid").read_text().split()
    finished = asyncio.run(states(tmp_path))
    done = [key for key, state in finished.items() if state == "done"]
    again = subprocess.run([sys.executable, SCRIPT, str(tmp_path)], check=True, capture_output=True, text=True)  # noqa: S603 - our own
    assert again.stdout.splitlines()[-1] == f"sum {sum(range(100))}"
    paid = (tmp_path / "paid").read_text().split()
    assert len(done) >= kill_after - 1
    assert len(paid) - len(paid_before) == 100 - len(done)
    assert set(asyncio.run(states(tmp_path)).values()) == {"done"}
    assert set(paid) == {str(number) for number in range(100)}


async def states(folder: Path) -> dict[str, str]:
    async with GroupedLedger(SqliteTable(folder / "ledger.db")) as ledger:
        return {row.key: row.state for row in await ledger.rows(TASK)}
