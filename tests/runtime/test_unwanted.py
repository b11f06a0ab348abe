"""Losers have not failed: what was stopped because nobody needs it any more is told from what went wrong."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from runs import Gate

from headway.core.span import Span
from headway.runtime import Run, Runtime, task
from headway.runtime.unwanted import REMARK
from headway.trace.store import Store


async def spans_of(path: Path, body: Callable[[Run], Awaitable[object]]) -> list[Span]:
    """What is on record of ``body``, which may fail."""
    async with Runtime(store=path) as runtime:
        started = runtime.start(task()(body))
        await asyncio.gather(started, return_exceptions=True)
    with Store(path, readonly=True) as store:
        last = store.last()
        assert last is not None
        return list(store.spans(last))


async def racing(run: Run, runner: int) -> int:
    """The first is at once at the end; the others, and what they scatter, never are."""
    if runner:
        await run.map(Gate(), [1, 2])
    return runner


async def race(run: Run) -> int:
    return await run.race(racing, [0, 1])


async def judge(run: Run) -> int:
    votes = iter(range(5))

    async def vote(run: Run, _: str) -> int:
        return await racing(run, next(votes) // 3)  # three agree, two never end

    return await run.judge(vote, "x", votes=5, quorum=3)


async def hedge(run: Run) -> list[int]:
    tries = iter(range(2))

    async def slow_at_first(run: Run, _: str) -> int:
        return await racing(run, 1 - next(tries))

    return await run.map(slow_at_first, ["x"], hedge=0.0)


async def leave(run: Run) -> int:
    async with aclosing(run.stream(racing, [0, 1])) as results:
        async for _, value in results:
            return value
    return -1


@pytest.mark.parametrize("body", [race, judge, hedge, leave])
async def test_what_was_not_needed_any_more_has_not_failed(
    tmp_path: Path, body: Callable[[Run], Awaitable[object]]
) -> None:
    spans = await spans_of(tmp_path / "s.db", body)
    assert [span.name for span in spans if span.error is not None] == []
    assert all(span.end is not None for span in spans)
    assert any(REMARK in span.remarks for span in spans)


async def test_what_was_cancelled_for_another_reason_has(tmp_path: Path) -> None:
    async def broken(run: Run, item: int) -> int:
        if item:
            return await racing(run, item)
        raise ValueError(item)

    async def body(run: Run) -> list[int]:
        return await run.map(broken, [0, 1])

    spans = await spans_of(tmp_path / "s.db", body)
    assert {span.error for span in spans} >= {"value", "items_failed"}
    assert not any(REMARK in span.remarks for span in spans if span.parent is None)
