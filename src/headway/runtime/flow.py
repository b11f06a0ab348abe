"""A pipeline at work: its stages' queues, what moves between them, and how each stage does."""

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sized
from contextlib import ExitStack, aclosing
from typing import Any, Generic, TypeVar

from msgspec import Struct

from headway.core.span import Step
from headway.runtime.progress import Stage as Progress
from headway.runtime.run import Run
from headway.runtime.scatter import Failure, Options, Scatter, Success, Tally, stop
from headway.runtime.spans import Timed

Out = TypeVar("Out")


class Plan(Struct, frozen=True, kw_only=True):
    """A stage as its pipeline has it."""

    name: str
    f: Callable[..., Any]
    queue: int
    options: Options
    priority: Callable[[Any], float] | None
    back: int | None = None
    """The stage to which an item goes that failed here."""
    times: int = 0
    """How often."""


class Figures(Struct, kw_only=True):
    """How a stage does. Seconds are sums over items."""

    name: str
    workers: int
    done: int = 0
    failed: int = 0
    """Items that ended here."""
    retries: int = 0
    sent_back: int = 0
    """Items that went from here to an earlier stage."""
    waiting: int = 0
    """In its queue now."""
    most_waiting: int = 0
    """In its queue at once, so far."""
    most_returned: int = 0
    """Beside its queue at once, sent back by later stages."""
    waited: float = 0.0
    """In its queue or beside it."""
    served: float = 0.0
    """In its function."""
    elapsed: float = 0.0
    """Since the pipeline began."""

    @property
    def busy(self) -> float:
        """Share of its workers' time that went into its function, from 0 to 1."""
        return self.served / (self.workers * self.elapsed) if self.elapsed else 0.0

    @property
    def throughput(self) -> float:
        """Items a second that it is done with."""
        return self.done / self.elapsed if self.elapsed else 0.0


class Flow(AsyncIterator[Out], Generic[Out]):
    """What comes out of a pipeline, in the order of its coming. Leave it early only inside ``contextlib.aclosing``.

    Iterating raises `ItemsFailedError` when more items have failed than are tolerated, and whatever the source raises.
    """

    def __init__(
        self, run: Run, plans: tuple[Plan, ...], items: Iterable[Any] | AsyncIterable[Any], tolerate: float
    ) -> None:
        self.failures: list[Failure] = []
        """Items that failed for good, by their index in the source."""
        self._run = run
        self._now = run.shared.spans.clock.now
        self._started: float | None = None
        self._ended: float | None = None
        self._source = items
        self._name = run.unique(f"pipeline {plans[0].name}")
        self._tally = Tally(self._name, len(items) if isinstance(items, Sized) else None, tolerate)
        self._span = Timed(run.shared.spans, run.id, run.span, self._name, Step(), early=True)
        self._stages = [_Stage(plan, place, run, self._now) for place, plan in enumerate(plans)]
        self._capacity = sum(plan.queue + plan.options.limit for plan in plans)
        self._inside = 0
        self._exhausted = False
        self._left = asyncio.Event()
        self._results: deque[Any] = deque()
        self._news = asyncio.Event()
        self._read = asyncio.Event()
        self._outputs = self._flow()

    async def __anext__(self) -> Out:
        """The next result."""
        return await self._outputs.__anext__()

    async def aclose(self) -> None:
        """Stop all that is under way."""
        await self._outputs.aclose()

    @property
    def figures(self) -> tuple[Figures, ...]:
        """How each stage does now."""
        if self._started is not None:
            for stage in self._stages:
                stage.figures.elapsed = (self._ended or self._now()) - self._started
        return tuple(stage.figures for stage in self._stages)

    @property
    def bottleneck(self) -> Figures:
        """The stage whose workers are busiest: more of them, or quicker ones, would make the whole quicker."""
        return max(self.figures, key=lambda figures: figures.busy)

    async def _flow(self) -> AsyncGenerator[Out]:
        self._started = self._now()
        tasks: set[asyncio.Task[None]] = set()
        with ExitStack() as spans:
            spans.enter_context(self._span)
            for stage in self._stages:
                stage.open(spans, self._span.id)
            try:
                tasks = {
                    asyncio.create_task(self._feed()),
                    *(asyncio.create_task(self._drive(s)) for s in self._stages),
                }
                for task in tasks:
                    task.add_done_callback(lambda _: self._news.set())
                while not (self._exhausted and not self._inside and not self._results):
                    await self._news.wait()
                    self._news.clear()
                    for task in tasks:
                        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                            raise error
                    while self._results:
                        yield self._results.popleft()
                        self._read.set()
                self._tally.end()
            finally:
                self._ended = self._now()
                await stop(tasks, self._name)

    async def _feed(self) -> None:
        first, index = self._stages[0], 0
        async for item in _each(self._source):
            while self._inside >= self._capacity:
                self._left.clear()
                await self._left.wait()
            self._inside += 1
            await first.put(_Entry(index, item))
            index += 1
        self._exhausted = True
        self._news.set()

    async def _drive(self, stage: "_Stage") -> None:
        async with aclosing(stage.scatter.outcomes()) as outcomes:
            async for outcome in outcomes:
                entry = stage.under_way.pop(outcome.index)
                match outcome:
                    case Success(value=value):
                        stage.figures.done += 1
                        await self._on(stage, entry, value)
                    case Failure(error=error):
                        self._failed(stage, entry, error)
                figures = stage.figures
                if self._run.path == self._run.id:
                    told = Progress(name=figures.name, done=figures.done, failed=figures.failed, of=self._tally.of)
                    self._run.shared.feed.stage(told)

    async def _on(self, stage: "_Stage", entry: "_Entry", value: Any) -> None:  # noqa: ANN401 - of any stage
        entry.value, entry.error = value, None
        if stage.place + 1 < len(self._stages):
            await self._stages[stage.place + 1].put(entry)
            return
        while len(self._results) >= stage.plan.options.limit:
            self._read.clear()
            await self._read.wait()
        self._tally.count(Success(entry.index, None))
        self._results.append(value)
        self._leave()

    def _failed(self, stage: "_Stage", entry: "_Entry", error: Exception) -> None:
        back = stage.plan.back
        if back is not None and entry.returns.get(stage.place, 0) < stage.plan.times:
            entry.returns[stage.place] = entry.returns.get(stage.place, 0) + 1
            stage.figures.sent_back += 1
            entry.value, entry.error = entry.inputs[back], error
            self._stages[back].put_back(entry)
            return
        stage.figures.failed += 1
        failure = Failure(entry.index, error)
        self.failures.append(failure)
        self._leave()
        self._tally.count(failure)

    def _leave(self) -> None:
        self._inside -= 1
        self._left.set()
        self._news.set()


class _Entry:
    """An item on its way."""

    def __init__(self, index: int, value: Any) -> None:  # noqa: ANN401 - of any stage
        self.index = index
        self.value = value
        self.error: Exception | None = None
        self.inputs: dict[int, Any] = {}
        self.returns: dict[int, int] = {}
        self.since = 0.0


class _Stage(Iterator[_Entry]):
    """A stage: its queue, and those sent back beside it; iterating takes what goes first."""

    def __init__(self, plan: Plan, place: int, run: Run, now: Callable[[], float]) -> None:
        self.plan = plan
        self.place = place
        self.figures = Figures(name=plan.name, workers=plan.options.limit)
        self.under_way: dict[int, _Entry] = {}
        self.scatter: Scatter[_Entry, Any] = Scatter(plan.name, self._work, self, plan.options, lasting=True)
        self._run = run
        self._path = run.unique(plan.name)
        self._now = now
        self._queue: list[tuple[float, int, _Entry]] = []
        self._returned: deque[_Entry] = deque()
        self._came = 0
        self._room = asyncio.Event()
        self._span: Timed | None = None

    def open(self, spans: ExitStack, parent: Any) -> None:  # noqa: ANN401 - a span's id
        """Begin its span."""
        timed = Timed(self._run.shared.spans, self._run.id, parent, f"stage {self.plan.name}", Step(), early=True)
        self._span = spans.enter_context(timed)

    async def put(self, entry: _Entry) -> None:
        """Let an item wait, once there is room."""
        while len(self._queue) >= self.plan.queue:
            self._room.clear()
            await self._room.wait()
        rank = 0.0 if self.plan.priority is None else -self.plan.priority(entry.value)
        self._came += 1
        entry.since = self._now()
        heapq.heappush(self._queue, (rank, self._came, entry))
        self.figures.waiting = len(self._queue)
        self.figures.most_waiting = max(self.figures.most_waiting, len(self._queue))
        self.scatter.more()

    def put_back(self, entry: _Entry) -> None:
        """Let an item wait that a later stage sent back."""
        entry.since = self._now()
        self._returned.append(entry)
        self.figures.most_returned = max(self.figures.most_returned, len(self._returned))
        self.scatter.more()

    def __next__(self) -> _Entry:
        """The item that goes first."""
        if self._returned:
            entry = self._returned.popleft()
        elif self._queue:
            _, _, entry = heapq.heappop(self._queue)
            self.figures.waiting = len(self._queue)
            self._room.set()
        else:
            raise StopIteration
        self.figures.waited += self._now() - entry.since
        return entry

    async def _work(self, index: int, again: str, entry: _Entry) -> Any:  # noqa: ANN401 - of any stage
        self.under_way[index] = entry
        self.figures.retries += bool(again)
        entry.inputs[self.place] = entry.value
        parent = None if self._span is None else self._span.id
        began = self._now()
        try:
            with Timed(self._run.shared.spans, self._run.id, parent, self.plan.name, Step()) as span:
                # A round through the pipeline pays anew; an attempt at the same round does not.
                rounds = sum(entry.returns.values())
                run = self._run.within(f"{self._path}/{entry.index}{f'~{rounds}' if rounds else ''}", span.id)
                run.sent_back = entry.error
                return await self.plan.f(run, entry.value)
        finally:
            self.figures.served += self._now() - began


async def _each(source: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    else:
        for item in source:
            yield item
