import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from services import own_schema, postgres_url

from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.core.task import TaskId
from headway.runtime import DbosEngine, Engine, GroupedLedger, Local, Paid, Run, Runtime, Said, SqliteTable, Stage, task

pytest.importorskip("dbos", reason="the extra `runtime` is not installed")
WORKER = Path(__file__).parents[1] / "support" / "durable_worker.py"
BEGUN: dict[str, asyncio.Event] = {}
STARTS: list[str] = []
MADE: list[int] = []


@task()
async def square(run: Run, number: int) -> int:
    run.say(f"{number} squared")
    return number * number


@task()
async def breaks(_run: Run) -> None:
    raise KeyError("gone")


@task()
async def waits(run: Run) -> int:
    async def make() -> Paid:
        MADE.append(1)
        return Paid(len(MADE))

    paid = await run.once("m", "q", make, int)
    STARTS.append(run.id)
    BEGUN["waits"].set()
    if len(STARTS) < 2:
        await asyncio.Event().wait()
    return paid


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncGenerator[Engine]:
    async with GroupedLedger(SqliteTable(folder / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
        engine = Local(runtime) if kind == "local" else DbosEngine(folder / "t.db", runtime, [square, breaks, waits])
        async with engine:
            yield engine


@pytest.mark.parametrize("kind", ["local", "dbos"])
async def test_engines_keep_tasks_alike(kind: str, tmp_path: Path) -> None:
    STARTS.clear()
    MADE.clear()
    BEGUN["waits"] = asyncio.Event()
    async with opened(kind, tmp_path) as engine:
        squared = await engine.start(square, 7)
        said = [event async for event in squared.progress() if isinstance(event, Said)]
        assert await squared == 49
        assert [event.text for event in said] in (["7 squared"], [])
        with pytest.raises(HeadwayError, match="breaks failed: KeyError: 'gone'"):
            await (await engine.start(breaks))
        waiting = await engine.start(waits)
        await BEGUN["waits"].wait()
        await engine.cancel(waiting.id)
        with pytest.raises(HeadwayError, match="was cancelled"):
            await waiting
        assert sorted((one.task, one.state) for one in await engine.list()) == [
            ("breaks", "failed"),
            ("square", "done"),
            ("waits", "cancelled"),
        ]
        with pytest.raises(BadInputError, match="was not cancelled"):
            await engine.resume(squared.id)
        await engine.resume(waiting.id)
        assert await waiting == 1
        assert ([1], [waiting.id, waiting.id]) == (MADE, STARTS)
        for act in (engine.result, engine.cancel, engine.resume):
            with pytest.raises(NotFoundError, match="no task nobody"):
                await act(TaskId("nobody"))


async def test_a_durable_run_streams_its_progress(tmp_path: Path) -> None:
    """Elsewhere a run that was made durable lost its stream (pydantic-ai#6092)."""
    watched = asyncio.Event()

    async def item(_run: Run, number: int) -> int:
        return number

    @task()
    async def tells(run: Run) -> str:
        await run.map(item, [1])
        await watched.wait()
        run.say("first finding")
        return "done"

    said: list[Said] = []
    async with Runtime() as runtime, DbosEngine(tmp_path / "t.db", runtime, [tells]) as engine:
        told = await engine.start(tells)
        async for event in told.progress():
            match event:
                case Stage():
                    watched.set()
                case Said():
                    said.append(event)
        assert await told == "done"
    assert said == [Said(stage="", text="first finding")]


async def test_a_file_is_one_processs_at_a_time_and_tasks_are_known(tmp_path: Path) -> None:
    @task()
    async def stranger(_run: Run) -> None: ...

    async with Runtime() as runtime, DbosEngine(tmp_path / "t.db", runtime, [square]) as engine:
        with pytest.raises(BadInputError, match="Another process has the tasks"):
            await DbosEngine(tmp_path / "t.db", runtime, []).__aenter__()
        with pytest.raises(BadInputError, match=r"stranger is none of the engine's tasks.*tasks="):
            await engine.start(stranger)


def start(where: str, schema: str, folder: Path, tasks: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(WORKER), where, schema, str(folder), str(tasks)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own


def after(child: "subprocess.Popen[str]", lines: int) -> None:
    """Wait until the child has said so many lines."""
    assert child.stdout is not None
    for _ in range(lines):
        assert child.stdout.readline()


def check(folder: Path, tasks: int, in_flight: int) -> None:
    """All is paid for, and at most what was under way at the kill twice."""
    paid = (folder / "paid").read_text().split()
    assert len(set(paid)) == 100 * tasks
    assert len(paid) <= 100 * tasks + in_flight


def test_what_was_killed_in_a_file_is_taken_up_when_it_is_opened_again(tmp_path: Path) -> None:
    where = str(tmp_path / "t.db")
    (tmp_path / "go").touch()
    with start(where, "", tmp_path, 1) as child:
        after(child, 1 + 30)
        child.kill()
    with start(where, "", tmp_path, 0) as again:
        output, _ = again.communicate(timeout=60)
    assert output.splitlines()[-1] == f"sum {sum(range(100))}"
    check(tmp_path, 1, in_flight=2)


def test_of_two_workers_on_postgres_one_is_killed_and_the_other_finishes_all(tmp_path: Path) -> None:
    url = postgres_url()
    with own_schema(url) as schema, start(url, schema, tmp_path, 2) as first:
        after(first, 1 + 2 * 50)
        with start(url, schema, tmp_path, 1) as second:
            after(second, 1)
            first.kill()
            (tmp_path / "go").touch()
            output, _ = second.communicate(timeout=90)
    assert output.splitlines()[-3:] == [f"sum {sum(range(100))}"] * 3
    check(tmp_path, 3, in_flight=4)


def test_the_private_function_of_dbos_that_hands_over_is_as_we_know_it() -> None:
    from dbos import DBOS, _recovery  # noqa: PLC0415 - where it is installed

    hand_over = DBOS._recover_pending_workflows  # pyright: ignore[reportPrivateUsage] - what is pinned
    signature = inspect.signature(hand_over)
    assert list(signature.parameters) == ["executor_ids"]
    assert "reenqueue_for_recovery(" in inspect.getsource(_recovery), "the look whether the dead still owns them"
