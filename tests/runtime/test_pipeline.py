import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import double, in_a_run

from headway.core.errors import BadInputError, ItemsFailedError
from headway.runtime import Flow, Paid, Pipeline, Run, Runtime, Stage, back_to, task
from headway.trace.store import Store


async def text(_run: Run, number: int) -> str:
    return str(number)


async def test_items_go_through_all_stages() -> None:
    doubled: Pipeline[int, str] = Pipeline[int, int]().stage(double, workers=2, queue=2).stage(text)

    async def body(run: Run) -> list[str]:
        return [result async for result in doubled.run(run, range(20))]

    assert sorted(await in_a_run(body), key=int) == [str(2 * number) for number in range(20)]


class Shaped:
    """Stages of (workers, queue, turns of the loop that an item takes); some items fail twice at the last one."""

    def __init__(self, shape: list[tuple[int, int, int]], failing: set[int], back: int) -> None:
        self.taken = 0
        self.failing = failing
        self.failures: dict[int, int] = {}
        functions = [self._function(place, *stage) for place, stage in enumerate(shape)]
        self.pipeline: Pipeline[int, int] = Pipeline()
        for place, (workers, queue, _) in enumerate(shape):
            last = place == len(shape) - 1
            on_fail = back_to(functions[min(back, place)], times=2) if last else None
            self.pipeline = self.pipeline.stage(functions[place], workers=workers, queue=queue, on_fail=on_fail)
        self._last = functions[-1]

    def source(self, count: int) -> Iterator[int]:
        for number in range(count):
            self.taken += 1
            yield number

    def _function(self, place: int, workers: int, _: int, turns: int) -> Any:  # noqa: ANN401 - a stage's function
        at_work = 0

        async def f(_run: Run, number: int) -> int:
            nonlocal at_work
            at_work += 1
            assert at_work <= workers, f"stage {place}"
            for _ in range(turns):
                await asyncio.sleep(0)
            at_work -= 1
            if f is self._last and number in self.failing and self.failures.get(number, 0) < 2:
                self.failures[number] = self.failures.get(number, 0) + 1
                raise ValueError(number)
            return number

        return f


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=4),
    st.integers(0, 40),
    st.sets(st.integers(0, 39), max_size=8),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_every_item_comes_out_once_and_no_queue_passes_its_bound(
    shape: list[tuple[int, int, int]], count: int, failing: set[int], back: int, slow: int
) -> None:
    shaped = Shaped(shape, failing, back)
    capacity = sum(workers + queue for workers, queue, _ in shape)
    seen: list[int] = []

    async def body(run: Run) -> Flow[int]:
        flow = shaped.pipeline.run(run, shaped.source(count))
        async for number in flow:
            for _ in range(slow * 5):
                await asyncio.sleep(0)
            seen.append(number)
            assert shaped.taken - len(seen) <= capacity + shape[-1][0] + 1
        return flow

    flow = asyncio.run(in_a_run(body))
    assert sorted(seen) == list(range(count))
    for figures, (_, queue, _) in zip(flow.figures, shape, strict=True):
        assert figures.most_waiting <= queue
        assert figures.most_returned <= capacity
    assert flow.figures[-1].sent_back == 2 * len({number for number in failing if number < count})


async def test_the_slowest_stage_holds_the_source_back() -> None:
    gate = asyncio.Event()
    taken = 0

    def source() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    async def stuck(_run: Run, number: int) -> int:
        await gate.wait()
        return number

    async def body(run: Run) -> None:
        flow = (
            Pipeline[int, int]().stage(double, workers=2, queue=3).stage(stuck, workers=2, queue=3).run(run, source())
        )
        async with aclosing(flow):
            first = asyncio.ensure_future(anext(flow))
            for _ in range(200):
                await asyncio.sleep(0)
            assert taken <= 2 + 3 + 2 + 3 + 1
            assert [figures.waiting for figures in flow.figures] == [3, 3]
            gate.set()
            assert await first == 2

    await in_a_run(body)


async def test_an_item_that_fails_goes_back_with_what_it_failed_of_and_pays_anew() -> None:
    made: list[str] = []

    async def fix(run: Run, bug: str) -> str:
        async def make() -> Paid:
            made.append(f"{bug}: {run.sent_back}")
            return Paid(f"{bug} patch {len(made)}")

        return await run.once("model", bug, make, str)

    async def validate(_run: Run, patch: str) -> str:
        if not patch.endswith("3"):
            raise ValueError(f"{patch} breaks")
        return patch

    async def body(run: Run) -> tuple[list[str], Flow[str]]:
        fixing = Pipeline[str, str]().stage(fix).stage(validate, on_fail=back_to(fix, times=2))
        flow = fixing.run(run, ["bug"])
        return [patch async for patch in flow], flow

    patches, flow = await in_a_run(body)
    assert patches == ["bug patch 3"]
    assert made == ["bug: None", "bug: bug patch 1 breaks", "bug: bug patch 2 breaks"]
    assert [(figures.name, figures.done, figures.sent_back) for figures in flow.figures] == [
        ("fix", 3, 0),
        ("validate", 1, 2),
    ]


async def test_an_item_that_fails_for_good_is_told_of_and_the_rest_goes_on() -> None:
    async def picky(_run: Run, number: int) -> int:
        if number % 3 == 0:
            raise ValueError(number)
        return number

    pipeline = Pipeline[int, int]().stage(double).stage(picky, retries=1, on_fail=back_to(double))

    async def tolerant(run: Run) -> Flow[int]:
        flow = pipeline.run(run, range(6), tolerate=0.4)
        assert sorted([number async for number in flow]) == [2, 4, 8, 10]
        return flow

    async def strict(run: Run) -> None:
        async for _ in pipeline.run(run, range(6)):
            pass

    flow = await in_a_run(tolerant)
    assert sorted(failure.index for failure in flow.failures) == [0, 3]
    assert (flow.figures[1].failed, flow.figures[1].retries, flow.figures[1].sent_back) == (2, 4, 2)
    with pytest.raises(ItemsFailedError, match="pipeline double: 1 of 6 items failed"):
        await in_a_run(strict)


async def test_a_hung_item_fails_and_an_endless_one_is_left_to_itself() -> None:
    async def hang(_run: Run, number: int) -> int:
        if number == 2:
            await asyncio.Event().wait()
        return number

    async def body(run: Run) -> list[int]:
        flow = Pipeline[int, int]().stage(hang, workers=1, timeout=0.01).run(run, range(4), tolerate=0.3)
        found = [number async for number in flow]
        assert "not done in 0.01 s" in str(flow.failures[0].error)
        return found

    assert await in_a_run(body) == [0, 1, 3]


async def test_of_those_that_wait_the_highest_goes_first() -> None:
    gate, order = asyncio.Event(), list[int]()

    async def one_by_one(_run: Run, number: int) -> int:
        await gate.wait()
        order.append(number)
        return number

    async def body(run: Run) -> None:
        pipeline = Pipeline[int, int]().stage(one_by_one, workers=1, queue=10, priority=lambda number: number % 3)
        flow = pipeline.run(run, range(7))
        first = asyncio.ensure_future(anext(flow))
        for _ in range(50):
            await asyncio.sleep(0)
        gate.set()
        await first
        async for _ in flow:
            pass

    await in_a_run(body)
    assert order == [0, 2, 5, 1, 4, 3, 6]


async def test_a_source_may_be_asynchronous_and_may_break() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    async def body(run: Run) -> list[int]:
        return [number async for number in Pipeline[int, int]().stage(double).run(run, numbers())]

    async def breaks(run: Run) -> list[int]:
        return [number async for number in Pipeline[int, int]().stage(double).run(run, broken())]

    assert sorted(await in_a_run(body)) == [0, 2, 4]
    with pytest.raises(OSError, match="disk"):
        await in_a_run(breaks)


async def test_the_busiest_stage_is_the_bottleneck_and_progress_is_told() -> None:
    async def slow(_run: Run, number: int) -> int:
        await asyncio.sleep(0.005)
        return number

    @task()
    async def flows(run: Run) -> str:
        flow = Pipeline[int, int]().stage(double).stage(slow, workers=1).stage(text).run(run, range(10))
        async for _ in flow:
            pass
        assert 0 < flow.bottleneck.busy <= 1
        assert flow.bottleneck.throughput > 0
        assert flow.figures[1].waited > 0
        return flow.bottleneck.name

    started = flows.start()
    events = [event async for event in started.progress()]
    assert await started == "slow"
    last = {event.name: event for event in events if isinstance(event, Stage)}
    assert last == {name: Stage(name=name, done=10, of=10) for name in ("double", "slow", "text")}


async def test_its_spans_nest_task_pipeline_stage_item(tmp_path: Path) -> None:
    @task()
    async def flows(run: Run) -> None:
        async for _ in Pipeline[int, int]().stage(double).stage(text).run(run, range(1)):
            pass

    async with Runtime(store=tmp_path / "s.db") as runtime:
        started = runtime.start(flows)
        await started
    with Store(tmp_path / "s.db", readonly=True) as store:
        spans = {span.id: span for span in store.spans(started.id)}
    assert {(span.name, spans[span.parent].name if span.parent else None) for span in spans.values()} == {
        ("invoke_agent flows", None),
        ("pipeline double", "invoke_agent flows"),
        ("stage double", "pipeline double"),
        ("stage text", "pipeline double"),
        ("double", "stage double"),
        ("text", "stage text"),
    }
    assert all(span.end is not None for span in spans.values())


async def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadInputError, match="times=0"):
        back_to(double, times=0)
    with pytest.raises(BadInputError, match="queue=0"):
        Pipeline[int, int]().stage(double, queue=0)
    with pytest.raises(BadInputError, match="limit=0"):
        Pipeline[int, int]().stage(double, workers=0)
    with pytest.raises(BadInputError, match="sends back to text, which is no stage"):
        Pipeline[int, int]().stage(double, on_fail=back_to(text))

    async def body(run: Run) -> None:
        Pipeline[int, int]().run(run, [])

    with pytest.raises(BadInputError, match="no stages"):
        await in_a_run(body)
