"""Tasks: async functions that get a `Run`, started by a `Runtime`."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from headway.core.clock import Clock, SystemClock
from headway.core.errors import BadInputError, OverDeadlineError
from headway.core.span import Step
from headway.core.task import TaskId
from headway.runtime.memo import Ledger, Memo
from headway.runtime.models import Models
from headway.runtime.progress import Feed, Progress
from headway.runtime.purse import NOTHING, Amount, Budget, Purse
from headway.runtime.results import ResultCache
from headway.runtime.run import Run
from headway.runtime.scatter import GRACE_OF_A_TASK, stop
from headway.runtime.shared import Lane, Shared
from headway.runtime.spans import Spans, Timed
from headway.trace.record import Recorder
from headway.trace.store import Store

P = ParamSpec("P")
R = TypeVar("R")
_SPANS_WAITING = 100_000
"""About 100 MB; a task that makes them faster than a disk takes them for long loses some, and its log says so."""


class Task(Generic[P, R]):
    """An async function of a `Run`, with a budget; `task` makes it.

    Called with a run, it is a part of that run's task: it spends from the same purse, and has its own limits beside.
    `start` runs it by itself.
    """

    def __init__(self, body: Callable[Concatenate[Run, P], Awaitable[R]], budget: Budget, lane: Lane) -> None:
        self.body = body
        self.budget = budget
        self.lane: Lane = lane
        self.__name__ = body.__name__
        update_wrapper(self, body)

    async def __call__(self, run: Run, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it as a part of ``run``'s task.

        Raises:
            OverDeadlineError: it took longer than its budget's seconds.
        """
        place = run.unique(self.__name__)
        with run.timed(f"invoke_agent {self.__name__}", Step(agent=self.__name__)) as span:
            before = run.shared.memo.spent_before(f"{run.path}/{place}")
            purse = Purse(self.budget, run.purse, before, self.__name__)
            return await self.held(run.within(place, span.id, purse, self._deadline(run.shared)), *args, **kwargs)

    def start(self, *args: P.args, **kwargs: P.kwargs) -> "Started[R]":
        """Start it in a `Runtime` of its own, which keeps nothing: no spans, no ledger."""
        return Runtime().start(self, *args, **kwargs)

    async def held(self, run: Run, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run its body, held to the seconds of its budget."""
        limit = asyncio.timeout(self.budget.seconds)
        try:
            async with limit:
                return await self.body(run, *args, **kwargs)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise OverDeadlineError(
                f"{self.__name__} was not done in the {self.budget.seconds:g} s of its budget.",
                fix="Raise Budget.seconds, or let it do less.",
            ) from error

    def deadline(self, clock: Clock) -> float | None:
        """When it has to be done if it starts now."""
        return None if self.budget.seconds is None else clock.now() + self.budget.seconds

    def _deadline(self, shared: Shared) -> float | None:
        return self.deadline(shared.spans.clock)


def task(
    *, budget: Budget | None = None, lane: Lane = "interactive"
) -> Callable[[Callable[Concatenate[Run, P], Awaitable[R]]], Task[P, R]]:
    """Make an async function, whose first parameter is a `Run`, a task.

    Args:
        budget: what it may take; without one it is not limited.
        lane: ``interactive`` where a person waits for it, else ``batch``.
    """

    def made(body: Callable[Concatenate[Run, P], Awaitable[R]]) -> Task[P, R]:
        if not inspect.iscoroutinefunction(body):
            raise BadInputError(f"{body.__name__} is no async function.", fix="Write `async def`.")
        return Task(body, budget or Budget(), lane)

    return made


class Started(Awaitable[R]):
    """A task under way; await it for its result."""

    def __init__(self, task: TaskId) -> None:
        self.id = task
        self.feed = Feed()
        self.purse: Purse | None = None
        self.in_doubt: tuple[str, ...] = ()
        """Paid calls that were under way when an earlier process died: whether they were done, nobody knows."""
        self.work: asyncio.Task[R] | None = None

    def __await__(self) -> Generator[Any, None, R]:
        """Its result, or what it failed of."""
        return self.running.__await__()

    @property
    def running(self) -> "asyncio.Task[R]":
        """What runs it."""
        assert self.work is not None  # noqa: S101 - a runtime sets it where it makes this
        return self.work

    @property
    def spent(self) -> Amount:
        """What it has spent, earlier processes included."""
        return NOTHING if self.purse is None else self.purse.spent

    def progress(self) -> AsyncIterator[Progress]:
        """How far its stages are, and what it says; from now to its end."""
        return self.feed.watch()

    async def cancel(self) -> None:
        """Stop it, and all that it started. What does not heed is left to itself after 3 seconds and logged."""
        await stop({self.running}, str(self.id), GRACE_OF_A_TASK)


class Runtime:
    """Where tasks run: what records them, and what keeps what they paid for. An async context manager.

    Args:
        store: a file for their spans, such as the gateway's; ``None``: nobody keeps them.
        ledger: keeps their paid calls, so that they can be taken up again; ``None``: only while they run.
        models: where `Run.chat` asks; it stays the caller's to close.
        results: what tools gave that may be given again; several runtimes may share one. ``None``: one of its own.
        tenant: whose tasks these are: what a tool's results are kept for, where it shares them between tasks.
        clock: for spans and deadlines.
    """

    def __init__(
        self,
        *,
        store: Path | None = None,
        ledger: Ledger | None = None,
        models: Models | None = None,
        results: ResultCache | None = None,
        tenant: str = "",
        clock: Clock | None = None,
    ) -> None:
        self._store = None if store is None else Store(store)
        self._recorder = None if self._store is None else Recorder(self._store, _SPANS_WAITING)
        self._spans = Spans(clock or SystemClock(), self._recorder, store)
        self._ledger = ledger
        self._models = models
        self._results = ResultCache() if results is None else results
        self._tenant = tenant
        self._gates: WeakKeyDictionary[object, asyncio.Semaphore] = WeakKeyDictionary()
        self._working: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop what still runs, and write what was recorded."""
        await stop(self._working, "a runtime", GRACE_OF_A_TASK)
        if self._recorder is not None and self._store is not None:
            await asyncio.to_thread(self._recorder.close)
            self._store.close()

    def start(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Started[R]:
        """Start a task."""
        return self.resume(self.new_name(), task, *args, **kwargs)

    def new_name(self) -> TaskId:
        """A name that no task has."""
        return self._spans.new_task()

    def resume(self, name: TaskId, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Started[R]:
        """Start the task called ``name`` again, or for the first time; what it paid for before it is given again."""
        started = Started[R](name)
        started.work = asyncio.create_task(self._run(started, task, *args, **kwargs), name=str(name))
        self._working.add(started.work)
        started.work.add_done_callback(self._working.discard)
        return started

    async def _run(self, started: Started[R], task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            rows = [] if self._ledger is None else await self._ledger.rows(started.id)
            memo = Memo(started.id, rows, self._ledger)
            started.in_doubt = memo.in_doubt
            purse = started.purse = Purse(task.budget, None, memo.spent_before(started.id), task.__name__)
            shared = Shared(
                task=started.id,
                lane=task.lane,
                spans=self._spans,
                memo=memo,
                feed=started.feed,
                models=self._models,
                results=self._results,
                tenant=self._tenant,
                gates=self._gates,
            )
            work = Step(agent=task.__name__)
            with Timed(self._spans, started.id, None, f"invoke_agent {task.__name__}", work, early=True) as span:
                run = Run(shared, started.id, span.id, purse, task.deadline(self._spans.clock))
                return await task.held(run, *args, **kwargs)
        finally:
            started.feed.end()
