"""What the runtime adds to the time of the calls that it scatters, as ratios measured in one run.

    python benchmarks/runtime.py [--quick]

Each call waits 50 ms, as for a model; the ideal time of 1,000 at 64 is 16 waves of 50 ms. Plain asyncio does the same
work beside us, and so does LangGraph where it is installed.
"""

import argparse
import asyncio
import operator
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from headway.core.errors import OverBudgetError
from headway.core.money import MicroUsd
from headway.core.task import TaskId
from headway.runtime import Amount, Budget, GroupedLedger, Paid, Pipeline, Purse, Run, Runtime, SqliteTable, task

CALLS, WIDTH, SECONDS = 1_000, 64, 0.05
IDEAL = -(-CALLS // WIDTH) * SECONDS
SUPPORT = Path(__file__).parents[1] / "tests" / "support"
PAYING, WORKER = SUPPORT / "paying.py", SUPPORT / "durable_worker.py"


async def wait(_run: Run, number: int) -> int:
    """A call that costs nothing but time."""
    await asyncio.sleep(SECONDS)
    return number


async def pay(run: Run, number: int) -> int:
    """A call that is paid for, once."""

    async def make() -> Paid:
        await asyncio.sleep(SECONDS)
        return Paid(number)

    return await run.once("call", number, make, int)


@task()
async def scattered(run: Run) -> None:
    """All calls, as a task."""
    await run.map(wait, range(CALLS), limit=WIDTH)


@task()
async def paid(run: Run) -> None:
    """All calls, each paid for."""
    await run.map(pay, range(CALLS), limit=WIDTH)


class Watch:
    """How long what is in its ``with`` block takes, and how much of a processor. Opening files is not in it."""

    def __enter__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu


async def plain(watch: Watch) -> None:
    """All calls, by asyncio alone."""
    at_once = asyncio.Semaphore(WIDTH)

    async def call() -> None:
        async with at_once:
            await asyncio.sleep(SECONDS)

    with watch:
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLS):
                group.create_task(call())


async def ours(watch: Watch) -> None:
    """By `run.map`."""
    with watch:
        await scattered.start()


async def recorded(watch: Watch) -> None:
    """By `run.map`, with spans in a store."""
    with tempfile.TemporaryDirectory() as folder:
        async with Runtime(store=Path(folder) / "s.db") as runtime:
            with watch:
                await runtime.start(scattered)


async def durable(watch: Watch) -> None:
    """By `run.map` and `run.once`, in a ledger: an intent and a result for each call."""
    with tempfile.TemporaryDirectory() as folder:
        async with GroupedLedger(SqliteTable(Path(folder) / "l.db")) as ledger, Runtime(ledger=ledger) as runtime:
            with watch:
                await runtime.start(paid)


class Found(TypedDict):
    """What LangGraph's graph gathers."""

    found: Annotated[list[int], operator.add]


async def langgraph(watch: Watch) -> None:
    """By a graph of LangGraph's with one node, to which every call is sent."""
    library: Any = import_module("langgraph.graph")
    send: Any = import_module("langgraph.types").Send

    async def call(state: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(SECONDS)
        return {"found": [state["n"]]}

    def all_calls(_state: dict[str, Any]) -> list[Any]:
        return [send("call", {"n": number}) for number in range(CALLS)]

    graph = library.StateGraph(Found)
    graph.add_node("call", call)
    graph.add_conditional_edges(library.START, all_calls, ["call"])
    graph.add_edge("call", library.END)
    compiled = graph.compile()
    with watch:
        await compiled.ainvoke({}, {"max_concurrency": WIDTH})


async def scatters(rounds: int) -> None:
    """All ways in turn, several times, so that what disturbs one disturbs all."""
    ways: list[tuple[str, Callable[[Watch], Awaitable[None]], str]] = [
        ("plain asyncio", plain, ""),
        ("run.map", ours, "goal 1.10"),
        ("run.map, recorded", recorded, ""),
        ("run.map, durable", durable, "goal 1.20"),
    ]
    if find_spec("langgraph") is not None:
        ways.append(("LangGraph, not durable", langgraph, ""))
    taken: dict[str, list[Watch]] = {name: [] for name, _, _ in ways}
    for _ in range(rounds):
        for name, work, _ in ways:
            watch = Watch()
            await work(watch)
            taken[name].append(watch)
    print(f"{CALLS} calls of {SECONDS * 1000:.0f} ms at {WIDTH}, ideal {IDEAL:.3f} s; median of {rounds}, and the best")
    bare = median(watch.seconds for watch in taken["plain asyncio"])
    for name, _, goal in ways:
        walls = [watch.seconds for watch in taken[name]]
        cpu = median(watch.cpu for watch in taken[name]) / CALLS * 1e6
        print(
            f"  {name:<24}{median(walls) / IDEAL:6.3f} of ideal, best {min(walls) / IDEAL:.3f};"
            f" {median(walls) / bare:.3f} of asyncio; {cpu:4.0f} µs of CPU a call  {goal}"
        )


def stage(seconds: float) -> Callable[[Run, int], Awaitable[int]]:
    """A stage's function that takes so long."""

    async def work(_run: Run, number: int) -> int:
        await asyncio.sleep(seconds)
        return number

    return work


async def pipelines() -> None:
    """Five stages of different speeds, against the time that the slowest needs alone."""
    shape = [(32, 0.02), (8, 0.02), (8, 0.04), (16, 0.03), (8, 0.01)]
    items, ideal = 400, 400 / 8 * 0.04

    @task()
    async def flows(run: Run) -> tuple[float, str, list[int]]:
        pipeline: Pipeline[int, int] = Pipeline()
        for workers, seconds in shape:
            pipeline = pipeline.stage(stage(seconds), workers=workers, queue=16)
        watch = Watch()
        flow = pipeline.run(run, range(items))
        with watch:
            async for _ in flow:
                pass
        return watch.seconds, flow.bottleneck.name, [figures.most_waiting for figures in flow.figures]

    taken, bottleneck, longest = await flows.start()
    print(f"5 stages, {items} items: {taken / ideal:.3f} of the time of the bottleneck alone (goal 1.15)")
    print(f"  bottleneck found in {bottleneck}")
    print(f"  longest queues {longest}, bound 16")


async def cancelling() -> None:
    """From `cancel` to nothing of a task of 10,000 items running."""
    taken: list[float] = []
    watch, left = Watch(), 0
    for limit in (64, 10_000):
        arrived = asyncio.Event()
        inside = 0

        async def item(_run: Run, _: int, limit: int = limit, arrived: asyncio.Event = arrived) -> None:
            nonlocal inside
            inside += 1
            if inside == limit:
                arrived.set()
            try:
                await asyncio.Event().wait()
            finally:
                inside -= 1

        @task()
        async def wide(run: Run, limit: int = limit) -> None:
            await run.map(item, range(10_000), limit=limit)

        started = wide.start()
        await arrived.wait()
        with watch:
            await started.cancel()
        taken.append(watch.seconds)
        left += inside + len(asyncio.all_tasks()) - 1
    print(
        f"10,000 items cancelled: {taken[0] * 1000:.1f} ms at 64 at once (goal 50), {taken[1] * 1000:.0f} ms at 10,000"
    )


def killing(times: int) -> None:
    """Kill -9 at random points of a scatter of 100 calls: what was paid twice, and what was lost."""
    dice = random.Random(5)
    twice = lost = in_flight = 0
    slowest = 0.0
    for _ in range(times):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with subprocess.Popen([sys.executable, str(PAYING), name], stdout=subprocess.PIPE) as child:
                hear(child, dice.randrange(1, 100))
                child.kill()
            before = asyncio.run(states(folder))
            started = time.perf_counter()
            again = subprocess.run([sys.executable, str(PAYING), name], check=True, capture_output=True, text=True)
            slowest = max(slowest, time.perf_counter() - started)
            payments = (folder / "paid").read_text().split()
            done = {key.split("/")[2].split("|")[0] for key, state in before.items() if state == "done"}
            twice += sum(payments.count(number) > 1 for number in done)
            lost += again.stdout.splitlines()[-1] != f"sum {sum(range(100))}"
            in_flight += sum(state == "intent" for state in before.values())
    print(f"kill -9 in a scatter of 100 calls, {times} times: {twice} finished calls paid twice, {lost} results lost;")
    print(
        f"  {in_flight} calls were under way and seen to be; slowest taking up {slowest:.2f} s with its start (goal 3)"
    )


def hear(child: "subprocess.Popen[bytes]", lines: int) -> None:
    """Wait until a process has said so many lines."""
    for _ in zip(range(lines), child.stdout or (), strict=False):
        pass


def taking_over(url: str) -> None:
    """Two workers on PostgreSQL, one killed: until the other is at work on what it was at."""
    schema = f"headway_bench_{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(WORKER), url, schema, folder]
        with subprocess.Popen([*command, "2"], stdout=subprocess.PIPE) as first:
            hear(first, 1 + 2 * 50)
            with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE) as second:
                hear(second, 1)
                first.kill()
                killed = time.perf_counter()
                (Path(folder) / "go").touch()
                said = [(time.perf_counter() - killed, line) for line in second.stdout or ()]
    sums = [line for _, line in said if line.startswith(b"sum")]
    print(
        f"two workers on PostgreSQL, one killed: taken over after {said[0][0]:.1f} s (goal 10), {len(sums)} of 2 tasks"
    )
    import_module("psycopg").connect(url, autocommit=True).execute(f"DROP SCHEMA {schema} CASCADE")


def budget() -> None:
    """64 calls at once on one purse, each reserving more than it uses, many times."""
    dice = random.Random(7)
    over = 0

    async def spend() -> int:
        limit = dice.randrange(1, 100_000)
        purse = Purse(Budget(usd=limit / 1_000_000))

        async def call() -> None:
            most = dice.randrange(0, 5_000)
            try:
                hold = await purse.reserve(Amount(money=MicroUsd(most)))
            except OverBudgetError:
                return
            await asyncio.sleep(0)
            hold.settle(Amount(money=MicroUsd(dice.randrange(0, most + 1))))

        await asyncio.gather(*(call() for _ in range(64)))
        return max(0, purse.spent.money - limit)

    for _ in range(200):
        over = max(over, asyncio.run(spend()))
    print(f"64 calls at once, 200 budgets: passed by {over} micro-USD at most (goal 0)")


async def states(folder: Path) -> dict[str, str]:
    """The ledger's rows."""
    async with GroupedLedger(SqliteTable(folder / "ledger.db")) as ledger:
        return {row.key: row.state for row in await ledger.rows(TaskId("a" * 32))}


def reachable(url: str) -> bool:
    """Whether a PostgreSQL answers."""
    if find_spec("psycopg") is None:
        return False
    psycopg: Any = import_module("psycopg")
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and kills")
    quick = parser.parse_args().quick
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    asyncio.run(scatters(3 if quick else 5))
    asyncio.run(pipelines())
    asyncio.run(cancelling())
    budget()
    killing(10 if quick else 50)
    url = os.environ.get("HEADWAY_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
    if find_spec("dbos") is not None and reachable(url):
        taking_over(url)
    else:
        print("two workers on PostgreSQL: not measured, because no PostgreSQL answers or the extras are not installed")


if __name__ == "__main__":
    main()
