import asyncio
import logging
from pathlib import Path

import pytest

from headway.core.errors import BadInputError, NotDoneError, OverBudgetError, OverDeadlineError
from headway.core.money import MicroUsd
from headway.core.span import Step
from headway.core.task import TaskId
from headway.runtime import Amount, Budget, Paid, Run, Runtime, Said, Stage, task
from headway.trace.store import Store


async def _forever() -> None:
    await asyncio.Event().wait()


async def _pay(run: Run, micro: int, asked: str = "q") -> str:
    most = Amount(money=MicroUsd(micro), calls=1)

    async def make() -> Paid:
        await asyncio.sleep(0)
        return Paid(f"answer to {asked}", most)

    return await run.once("bank", asked, make, str, most=most)


async def test_a_task_is_started_and_awaited() -> None:
    @task(budget=Budget(usd=1), lane="batch")
    async def greet(run: Run, name: str, *, loud: bool = False) -> str:
        assert run.lane == "batch"
        assert len(run.id) == 32
        assert run.path == run.id
        return f"hello {name}{'!' if loud else ''}"

    assert await greet.start("you", loud=True) == "hello you!"
    assert greet.__name__ == "greet"


async def test_only_an_async_function_can_be_a_task() -> None:
    with pytest.raises(BadInputError, match="async def"):
        task()(lambda _: 1)  # pyright: ignore[reportArgumentType] - wrong on purpose


async def test_a_task_ends_with_the_seconds_of_its_budget() -> None:
    @task(budget=Budget(seconds=0.01))
    async def slow(run: Run) -> None:
        assert run.seconds_left is not None
        assert run.seconds_left <= 0.01
        await _forever()

    with pytest.raises(OverDeadlineError, match=r"slow was not done in the 0.01 s of its budget.*Budget.seconds"):
        await slow.start()


async def test_its_own_timeout_error_is_not_taken_for_the_budgets() -> None:
    @task(budget=Budget(seconds=60))
    async def broken(_run: Run) -> None:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await broken.start()


async def test_a_task_within_a_task_has_limits_of_its_own_and_spends_its_callers_money() -> None:
    @task(budget=Budget(usd="0.00001 USD"))
    async def part(run: Run, micro: int) -> str:
        return await _pay(run, micro)

    @task(budget=Budget(usd="0.000015 USD"))
    async def whole(run: Run) -> list[str]:
        with pytest.raises(OverBudgetError, match="part"):
            await part(run, 11)
        await part(run, 10)
        assert run.purse.left[0] == 5
        with pytest.raises(OverBudgetError, match="whole"):
            await run.map(part, [10])
        return [*await run.map(part, [5])]

    started = whole.start()
    with pytest.raises(Exception, match="whole"):
        await started
    assert started.spent.money == 10


async def test_cancelling_a_task_stops_all_that_it_started() -> None:
    running = 0
    all_run = asyncio.Event()

    async def item(_run: Run, _item: int) -> None:
        nonlocal running
        running += 1
        if running == 64:
            all_run.set()
        try:
            await _forever()
        finally:
            running -= 1

    @task()
    async def wide(run: Run) -> None:
        await run.map(item, range(10_000))

    started = wide.start()
    await all_run.wait()
    await started.cancel()
    assert running == 0
    assert len(asyncio.all_tasks()) == 1
    with pytest.raises(asyncio.CancelledError):
        await started


async def test_leaving_a_runtime_stops_its_tasks() -> None:
    stopped = asyncio.Event()

    @task()
    async def endless(_run: Run) -> None:
        try:
            await _forever()
        finally:
            stopped.set()

    async with Runtime() as runtime:
        runtime.start(endless)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert stopped.is_set()


async def test_a_task_that_does_not_heed_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    release = asyncio.Event()

    @task()
    async def stubborn(_run: Run) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    started = stubborn.start()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with caplog.at_level(logging.WARNING):
        await started.cancel()
    assert "goes on although it was told to stop" in caplog.text
    release.set()
    await started


async def test_a_task_that_heeds_is_not_blamed_for_an_item_that_does_not(caplog: pytest.LogCaptureFixture) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()

    async def deaf(_run: Run, _: int) -> None:
        while not release.is_set():
            arrived.set()
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @task()
    async def whole(run: Run) -> None:
        await run.map(deaf, range(1))

    started = whole.start()
    await arrived.wait()
    with caplog.at_level(logging.WARNING):
        await started.cancel()
    release.set()
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("deaf: ")
    assert started.running.cancelled()


async def test_a_started_task_tells_how_far_it_is() -> None:
    async def item(run: Run, number: int) -> int:
        run.say(f"{number} ")
        if number == 2:
            raise ValueError("two")
        return number

    @task()
    async def told(run: Run) -> int:
        await run.map(item, range(4), tolerate=0.5, limit=1)
        run.say("done")
        return 1

    started = told.start()
    events = [event async for event in started.progress()]
    assert await started == 1
    assert events[-2].stage == "item" if isinstance(events[-2], Said) else True
    assert "".join(event.text for event in events if isinstance(event, Said)) == "0 1 2 3 done"
    last = [event for event in events if isinstance(event, Stage)][-1]
    assert last == Stage(name="item", done=3, failed=1, of=4)
    assert last.share == 1.0


async def test_its_spans_nest_task_stage_item(tmp_path: Path) -> None:
    async def item(run: Run, number: int) -> int:
        with run.timed("inner"):
            pass
        if number == 1:
            raise KeyError(number)
        return number

    @task()
    async def traced(run: Run) -> None:
        await run.map(item, range(2), tolerate=0.5)

    async with Runtime(store=tmp_path / "s.db") as runtime:
        started = runtime.start(traced)
        await started
    with Store(tmp_path / "s.db", readonly=True) as store:
        spans = {span.id: span for span in store.spans(TaskId(started.id))}
    names = {(span.name, spans[span.parent].name if span.parent else None, span.error) for span in spans.values()}
    assert names == {
        ("invoke_agent traced", None, None),
        ("scatter item", "invoke_agent traced", None),
        ("item", "scatter item", None),
        ("item", "scatter item", "key"),
        ("inner", "item", None),
    }
    root = next(span for span in spans.values() if span.parent is None)
    assert root.work == Step(agent="traced")
    assert root.end is not None


async def test_a_paid_call_that_finished_is_not_paid_again_when_its_item_is_retried() -> None:
    """As agno's retry of a whole run did (agno#10366)."""
    attempts = 0

    async def item(run: Run, _: int) -> str:
        nonlocal attempts
        attempts += 1
        answer = await _pay(run, 7)
        if attempts == 1:
            raise ValueError("after the charge")
        return answer

    @task(budget=Budget(usd="0.000007 USD", calls=1))
    async def charged(run: Run) -> list[str]:
        return await run.map(item, [0], retries=1)

    started = charged.start()
    assert await started == ["answer to q"]
    assert attempts == 2
    assert started.spent == Amount(money=MicroUsd(7), calls=1)


async def test_the_same_question_twice_is_asked_twice_and_another_key_asks_anew() -> None:
    made: list[str] = []

    async def ask(run: Run, key: str) -> str:
        async def make() -> Paid:
            made.append(key)
            return Paid(key)

        return await run.once("m", "q", make, str, key=key)

    async def retried(run: Run, _: int) -> None:
        await ask(run, f"{len(made)}")
        if len(made) < 2:
            raise ValueError("again")

    @task()
    async def asks(run: Run) -> None:
        await ask(run, "a")
        await ask(run, "a")
        made.clear()
        await run.map(retried, [0], retries=1)

    await asks.start()
    assert made == ["0", "1"]


async def test_a_call_that_fails_or_is_stopped_costs_all_that_it_may_have_cost_unless_nothing_was_done() -> None:
    most = Amount(money=MicroUsd(50), tokens=10, calls=1)

    async def fail() -> Paid:
        raise OSError("no answer")

    async def refused() -> Paid:
        raise NotDoneError("it is busy")

    async def hang() -> Paid:
        await _forever()
        return Paid(0)

    async def stopped(run: Run, _: int) -> None:
        await run.once("m", "b", hang, int, most=most)

    @task()
    async def spends(run: Run) -> list[Amount]:
        spent: list[Amount] = []
        with pytest.raises(NotDoneError):
            await run.once("m", "r", refused, int, most=most)
        spent.append(run.purse.spent)
        with pytest.raises(OSError, match="no answer"):
            await run.once("m", "a", fail, int, most=most)
        spent.append(run.purse.spent)
        await run.map(stopped, [0], timeout=0.01, tolerate=1)
        return [*spent, run.purse.spent]

    assert await spends.start() == [
        Amount(calls=1),
        Amount(money=MicroUsd(50), tokens=10, calls=2),
        Amount(money=MicroUsd(100), tokens=20, calls=3),
    ]


async def test_what_cannot_be_written_as_json_cannot_be_asked() -> None:
    @task()
    async def asks(run: Run) -> None:
        async def make() -> Paid:
            return Paid(0)

        await run.once("m", object(), make, int)

    with pytest.raises(BadInputError, match="JSON"):
        await asks.start()
