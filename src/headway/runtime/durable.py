"""Tasks that outlive what runs them: taken up again, cancelled and listed, whatever engine keeps them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator
from typing import Any, Generic, Literal, ParamSpec, Protocol, Self, TypeVar

from msgspec import Struct

from headway.core.errors import BadInputError, HeadwayError, NotFoundError
from headway.core.task import TaskId
from headway.runtime.progress import Progress
from headway.runtime.task import Runtime, Started, Task

P = ParamSpec("P")
R = TypeVar("R")

State = Literal["running", "done", "failed", "cancelled"]


class Standing(Struct, frozen=True, kw_only=True):
    """How a task stands."""

    id: TaskId
    task: str
    """The name of its function."""
    state: State


class Durable(Awaitable[R], Generic[R]):
    """A task that an engine keeps; await it for its result, wherever it runs."""

    def __init__(self, engine: "Engine", task: TaskId) -> None:
        self.id = task
        self._engine = engine

    def __await__(self) -> Generator[Any, None, R]:
        """Its result, or what it failed of."""
        return self._engine.result(self.id).__await__()

    def progress(self) -> AsyncIterator[Progress]:
        """How far its stages are, and what it says, while it runs in this process."""
        return self._engine.progress(self.id)


class Engine(Protocol):
    """Keeps tasks. An async context manager; leaving it stops what runs here."""

    async def __aenter__(self) -> Self:
        """Open it."""
        ...

    async def __aexit__(self, *error: object) -> None:
        """Stop what runs here."""
        ...

    async def start(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Durable[R]:
        """Start a task; it is kept when this returns."""
        ...

    async def result(self, task: TaskId) -> Any:  # noqa: ANN401 - of any task
        """Wait for a task's result.

        Raises:
            HeadwayError: it failed, and says of what, or was cancelled.
            NotFoundError: there is no such task.
        """
        ...

    async def cancel(self, task: TaskId) -> None:
        """Stop a task, and all that it started.

        Raises:
            NotFoundError: there is no such task.
        """
        ...

    async def resume(self, task: TaskId) -> None:
        """Take up a task again that was cancelled; what it paid for before it is given again.

        Raises:
            BadInputError: it was not cancelled.
            NotFoundError: there is no such task.
        """
        ...

    async def list(self) -> list[Standing]:
        """All tasks that there are, oldest first."""
        ...

    def progress(self, task: TaskId) -> AsyncIterator[Progress]:
        """What a task tells that runs in this process."""
        ...


class Local:
    """An `Engine` in memory: its tasks end with the process. A ledger, if its runtime has one, outlives it.

    Args:
        runtime: where tasks run.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[TaskId, tuple[Task[..., Any], tuple[Any, ...], dict[str, Any]]] = {}
        self._started: dict[TaskId, Started[Any]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop what runs."""
        for started in self._started.values():
            await started.cancel()

    async def start(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Durable[R]:
        """Start a task."""
        started = self._runtime.start(task, *args, **kwargs)
        self._kept[started.id] = (task, args, kwargs)
        self._started[started.id] = started
        return Durable(self, started.id)

    async def result(self, task: TaskId) -> Any:  # noqa: ANN401 - of any task
        """Wait for a task's result."""
        started = self._find(task)
        await asyncio.wait({started.running})
        if started.running.cancelled():
            raise cancelled(task)
        if (error := started.running.exception()) is not None:
            raise failed(self._kept[task][0].__name__, error) from error
        return started.running.result()

    async def cancel(self, task: TaskId) -> None:
        """Stop a task, and all that it started."""
        await self._find(task).cancel()

    async def resume(self, task: TaskId) -> None:
        """Take up a task again that was cancelled."""
        running = self._find(task).running
        if not running.cancelled():
            raise not_cancelled(task)
        again, args, kwargs = self._kept[task]
        self._started[task] = self._runtime.resume(task, again, *args, **kwargs)

    async def list(self) -> "list[Standing]":
        """All tasks that there are, oldest first."""
        return [
            Standing(id=task, task=self._kept[task][0].__name__, state=_state(started.running))
            for task, started in self._started.items()
        ]

    def progress(self, task: TaskId) -> AsyncIterator[Progress]:
        """What a task tells."""
        return self._find(task).progress()

    def _find(self, task: TaskId) -> Started[Any]:
        if task not in self._started:
            raise unknown(task)
        return self._started[task]


def _state(running: "asyncio.Task[Any]") -> State:
    if not running.done():
        return "running"
    if running.cancelled():
        return "cancelled"
    return "done" if running.exception() is None else "failed"


def failed(name: str, error: BaseException) -> HeadwayError:
    """A task that failed, told in a way that can be written down and read elsewhere."""
    return HeadwayError(f"{name} failed: {type(error).__name__}: {error}")


def cancelled(task: TaskId) -> HeadwayError:
    """A task that was cancelled has no result."""
    return HeadwayError(f"Task {task} was cancelled.", fix="Take it up again by resume().")


def unknown(task: TaskId) -> NotFoundError:
    """There is no such task."""
    return NotFoundError(f"There is no task {task}.", fix="list() names all.")


def not_cancelled(task: TaskId) -> BadInputError:
    """Only what was cancelled can be taken up by hand; what was killed is by itself."""
    return BadInputError(f"Task {task} was not cancelled.", fix="Start it anew.")
