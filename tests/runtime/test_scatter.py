import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import Gate, double, in_a_run

from headway.core.errors import BadInputError, ItemsFailedError
from headway.runtime import Run, task


@given(st.lists(st.integers(), max_size=50), st.integers(1, 9))
def test_map_keeps_the_order_of_its_items(items: list[int], limit: int) -> None:
    async def body(run: Run) -> list[int]:
        return await run.map(double, items, limit=limit)

    assert asyncio.run(in_a_run(body)) == [2 * item for item in items]


@given(st.integers(0, 40), st.integers(1, 9), st.lists(st.integers(0, 5), min_size=40, max_size=40))
def test_never_more_than_the_limit_at_once_and_each_item_once(count: int, limit: int, waits: list[int]) -> None:
    now = most = 0
    seen: list[int] = []

    async def item(_run: Run, number: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        for _ in range(waits[number]):
            await asyncio.sleep(0)
        seen.append(number)
        now -= 1

    async def body(run: Run) -> None:
        await run.map(item, range(count), limit=limit)

    asyncio.run(in_a_run(body))
    assert sorted(seen) == list(range(count))
    assert most <= min(limit, count)


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.floats(0, 1))
def test_as_many_may_fail_as_are_tolerated_and_no_more(fails: list[bool], tolerate: float) -> None:
    async def item(_run: Run, number: int) -> int:
        await asyncio.sleep(0)
        if fails[number]:
            raise ValueError(number)
        return number

    async def body(run: Run) -> None:
        found = await run.map(item, range(len(fails)), tolerate=tolerate, limit=4)
        assert found == [number for number, failed in enumerate(fails) if not failed]
        assert [failure.index for failure in found.failures] == [n for n, failed in enumerate(fails) if failed]

    if sum(fails) > tolerate * len(fails):
        with pytest.raises(ItemsFailedError, match="more than is tolerated"):
            asyncio.run(in_a_run(body))
    else:
        asyncio.run(in_a_run(body))


async def test_the_error_says_what_failed_first() -> None:
    async def item(_run: Run, _: int) -> None:
        raise KeyError("gone")

    async def body(run: Run) -> None:
        await run.map(item, [1, 2], limit=1)

    with pytest.raises(ItemsFailedError, match=r"item: 1 of 2 items failed.*first item 0: KeyError: 'gone'") as caught:
        await in_a_run(body)
    assert isinstance(caught.value.__cause__, KeyError)
    assert [index for index, _ in caught.value.errors] == [0]


async def test_an_item_that_fails_too_often_stops_those_under_way() -> None:
    gate = Gate()

    async def item(run: Run, number: int) -> int:
        if number == 3:
            raise ValueError(number)
        return await gate(run, number)

    async def body(run: Run) -> None:
        await run.map(item, range(100), limit=4)

    with pytest.raises(ItemsFailedError):
        await in_a_run(body)
    assert (gate.inside, gate.entered) == (0, 3)


async def test_a_failed_item_is_tried_again() -> None:
    tries: list[int] = []

    async def item(_run: Run, number: int) -> int:
        tries.append(number)
        if tries.count(number) <= number:
            raise ValueError(number)
        return number

    async def body(run: Run) -> list[int]:
        return await run.map(item, [0, 1, 2], retries=1, tolerate=0.34)

    assert await in_a_run(body) == [0, 1]
    assert sorted(tries) == [0, 1, 1, 2, 2]


async def test_what_fails_the_same_way_each_time_is_not_tried_again() -> None:
    tries = 0

    async def item(_run: Run, _: int) -> None:
        nonlocal tries
        tries += 1
        raise BadInputError("always")

    async def body(run: Run) -> None:
        await run.map(item, [0], retries=5, tolerate=1)

    await in_a_run(body)
    assert tries == 1


async def test_a_hung_item_is_stopped_and_the_rest_goes_on() -> None:
    gate = Gate()

    async def item(run: Run, number: int) -> int:
        return await gate(run, number) if number == 1 else number

    async def body(run: Run) -> list[int]:
        found = await run.map(item, range(3), timeout=0.02, tolerate=0.4)
        assert isinstance(found.failures[0].error, TimeoutError)
        assert "item, item 1: not done in 0.02 s" in str(found.failures[0].error)
        return found

    assert await in_a_run(body) == [0, 2]
    assert gate.inside == 0


async def test_an_item_that_never_ends_and_does_not_heed_fails_and_the_rest_goes_on() -> None:
    release = asyncio.Event()

    async def item(_run: Run, number: int) -> int:
        while number == 1 and not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return number

    @task()
    async def body(run: Run) -> list[int]:
        found = await run.map(item, range(3), timeout=0.01, tolerate=0.4)
        assert "goes on although it was told to stop" in str(found.failures[0].error)
        return found

    assert await body.start() == [0, 2]
    release.set()


async def test_an_item_that_cancels_itself_fails_alone() -> None:
    async def item(_run: Run, number: int) -> int:
        if number == 1:
            raise asyncio.CancelledError
        return number

    async def body(run: Run) -> list[int]:
        found = await run.map(item, range(3), tolerate=0.4)
        assert "cancelled from within" in str(found.failures[0].error)
        return found

    assert await in_a_run(body) == [0, 2]


async def test_a_function_that_would_block_the_others_is_refused() -> None:
    """One synchronous tool blocked all parallel calls elsewhere (openai-agents-python#2386, adk-python#6353)."""

    def blocks(_run: Run, number: int) -> int:
        return number

    async def body(run: Run) -> None:
        await run.map(blocks, [1])  # pyright: ignore[reportArgumentType] - wrong on purpose

    with pytest.raises(BadInputError, match=r"blocks is no async function.*asyncio.to_thread"):
        await in_a_run(body)


@pytest.mark.parametrize("bad", [{"limit": 0}, {"retries": -1}, {"timeout": 0}, {"tolerate": 2}, {"hedge": -1}])
async def test_options_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    async def body(run: Run) -> None:
        await run.map(double, [1], **bad)

    with pytest.raises(BadInputError, match="makes no sense"):
        await in_a_run(body)


async def test_items_that_break_in_the_middle_stop_the_scatter() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    async def body(run: Run) -> list[int]:
        return [value async for _, value in run.stream(double, items())]

    with pytest.raises(OSError, match="disk"):
        await in_a_run(body)


async def test_stream_gives_results_as_they_come() -> None:
    gates = [asyncio.Event() for _ in range(3)]

    async def item(_run: Run, number: int) -> str:
        await gates[number].wait()
        return f"r{number}"

    async def body(run: Run) -> list[tuple[int, str]]:
        gates[2].set()
        found: list[tuple[int, str]] = []
        async for index, value in run.stream(item, range(3)):
            found.append((index, value))
            gates[(index + 2) % 3].set()
        return found

    assert await in_a_run(body) == [(2, "r2"), (1, "r1"), (0, "r0")]


async def test_a_slow_reader_slows_an_endless_stream_down() -> None:
    started = 0

    async def item(_run: Run, number: int) -> int:
        nonlocal started
        started += 1
        return number

    def numbers() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    async def body(run: Run) -> None:
        async with aclosing(run.stream(item, numbers(), limit=4)) as results:
            async for index, _ in results:
                for _ in range(20):
                    await asyncio.sleep(0)
                assert started <= index + 1 + 2 * 4
                if index == 30:
                    break

    await in_a_run(body)


async def test_hedging_takes_the_twin_when_the_first_hangs() -> None:
    gate = Gate()
    calls = 0

    async def item(run: Run, number: int) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            await gate(run, number)
        return run.path.rpartition("/")[2]

    async def body(run: Run) -> list[str]:
        return await run.map(item, [0], hedge=0.01)

    assert await in_a_run(body) == ["0+"]
    assert gate.inside == 0


async def test_hedging_starts_no_twin_of_what_is_quick_and_fails_only_with_both() -> None:
    calls = 0

    async def item(_run: Run, _: int) -> None:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0.02 if calls == 1 else 0)
        raise ValueError(calls)

    async def body(run: Run) -> None:
        await run.map(double, [0], hedge=60)
        await run.map(item, [0], hedge=0.0, tolerate=1)

    await in_a_run(body)
    assert calls == 2
