"""Tasks kept by DBOS: one workflow a task, in a SQLite file for one process, or in PostgreSQL for several workers.

Paid calls are no steps of it, which would cost more than the calls; they are in the ledger. A task that is taken up
again runs from its beginning, and the ledger gives it what it has paid for.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from headway.core.errors import BadInputError, HeadwayError, MissingExtraError, StoreError
from headway.core.task import TaskId
from headway.runtime.durable import Durable, Standing, State, cancelled, failed, not_cancelled, unknown
from headway.runtime.progress import Progress
from headway.runtime.reaper import PULSE_SECONDS, Leases
from headway.runtime.task import Runtime, Started, Task

if TYPE_CHECKING:
    from dbos import DBOS, DBOSConfig

P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger(__name__)
_WORKFLOW: Final = "headway_task"
_STATES: Final[dict[str, State]] = {"SUCCESS": "done", "ERROR": "failed", "CANCELLED": "cancelled"}
_POLL: Final = 0.005
"""Seconds between two looks at whether a task has ended."""


class DbosEngine:
    """An `Engine` on DBOS; one a process. An async context manager.

    What ran when its process was killed is taken up when the file is opened again; in PostgreSQL another worker
    takes it up within seconds.

    Args:
        where: a file, for one process at a time; or the URL of a PostgreSQL database, for any number.
        runtime: where tasks run; with a ledger that all workers share, so that none pays twice.
        tasks: all tasks that can be started, also by others; workers of one ``version`` have the same.
        version: tasks are taken up by workers of the same version only.
        schema: in PostgreSQL; made if it is not there.

    Raises:
        MissingExtraError: the extra ``runtime`` is not installed.
    """

    def __init__(
        self,
        where: Path | str,
        runtime: Runtime,
        tasks: Sequence[Task[..., Any]],
        *,
        version: str = "1",
        schema: str = "headway",
    ) -> None:
        self._where = where
        self._runtime = runtime
        self._tasks = {task.__name__: task for task in tasks}
        self._version = version
        self._schema = schema
        self._started: dict[TaskId, Started[Any]] = {}
        self._begun: dict[TaskId, asyncio.Event] = {}
        self._lock: IO[bytes] | None = None
        self._leases: Leases | None = None
        self._pulse: asyncio.Task[None] | None = None
        self._leaving = threading.Event()
        self._dbos = _dbos()

    async def __aenter__(self) -> Self:
        """Open it, and take up what was left.

        Raises:
            BadInputError: another process has the file open.
            StoreError: the database cannot be used.
        """
        self._loop = asyncio.get_running_loop()
        worker = f"{os.uname().nodename}-{os.getpid()}-{os.urandom(4).hex()}"
        config: DBOSConfig = {
            "name": "headway",
            "application_version": self._version,
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
        }
        if isinstance(self._where, Path):
            self._lock = _only(self._where)
            config |= {"system_database_url": f"sqlite:///{self._where.absolute()}", "executor_id": "alone"}
        else:
            self._leases = await asyncio.to_thread(Leases, self._where, self._schema, worker)
            config |= {"system_database_url": self._where, "executor_id": worker, "dbos_system_schema": self._schema}
        self._dbos(config=config)

        async def headway_task(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - a task gives what it likes
            return await self._work(name, args, kwargs)

        self._workflow: Any = self._dbos.workflow(name=_WORKFLOW, max_recovery_attempts=None)(headway_task)
        self._dbos.launch()
        self._watch = asyncio.create_task(self._heed_cancelled())
        if self._leases is not None:
            await asyncio.to_thread(self._leases.renew)
            self._pulse = asyncio.create_task(asyncio.to_thread(self._beat, self._leases))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop what runs here; it is taken up by whoever opens the engine next, or by another worker."""
        self._leaving.set()
        self._watch.cancel()
        await asyncio.wait({self._watch} if self._pulse is None else {self._watch, self._pulse})
        for started in tuple(self._started.values()):
            await started.cancel()
        await asyncio.to_thread(self._dbos.destroy, destroy_registry=True)
        # DBOS has put its own threads in place of the loop's, and ended them.
        self._loop.set_default_executor(ThreadPoolExecutor())
        if self._leases is not None:
            self._leases.close()
        if self._lock is not None:
            self._lock.close()

    async def start(self, task: Task[P, R], *args: P.args, **kwargs: P.kwargs) -> Durable[R]:
        """Start a task; it is kept when this returns. Its arguments and its result have to be picklable.

        Raises:
            BadInputError: it is none of the engine's tasks.
        """
        from dbos import SetWorkflowID  # noqa: PLC0415 - an optional package

        if self._tasks.get(task.__name__) is not task:
            raise BadInputError(f"{task.__name__} is none of the engine's tasks.", fix="Give it in tasks=.")
        name = self._runtime.new_name()
        self._begun[name] = asyncio.Event()
        with SetWorkflowID(name):
            await self._dbos.start_workflow_async(self._workflow, task.__name__, args, kwargs)
        return Durable(self, name)

    async def result(self, task: TaskId) -> Any:  # noqa: ANN401 - of any task
        """Wait for a task's result, wherever it runs."""
        if await self._status(task) == "cancelled":
            raise cancelled(task)
        handle: Any = await self._dbos.retrieve_workflow_async(task)
        try:
            return await handle.get_result(polling_interval_sec=_POLL)
        except HeadwayError:
            raise
        except Exception:
            if await self._status(task) == "cancelled":
                raise cancelled(task) from None
            raise

    async def cancel(self, task: TaskId) -> None:
        """Stop a task; where another worker runs it, within about a second."""
        await self._status(task)
        await self._dbos.cancel_workflow_async(task)
        if task in self._started:
            await self._started[task].cancel()

    async def resume(self, task: TaskId) -> None:
        """Take up a task again that was cancelled."""
        if await self._status(task) != "cancelled":
            raise not_cancelled(task)
        await self._dbos.resume_workflow_async(task)

    async def list(self) -> "list[Standing]":
        """All tasks that there are, oldest first."""
        found: Any = await self._dbos.list_workflows_async(name=_WORKFLOW)
        return [
            Standing(id=one.workflow_id, task=str(one.input["args"][0]), state=_STATES.get(one.status, "running"))
            for one in found
        ]

    async def progress(self, task: TaskId) -> AsyncIterator[Progress]:
        """What a task tells that this process has started."""
        if task not in self._begun:
            raise unknown(task)
        await self._begun[task].wait()
        async for event in self._started[task].progress():
            yield event

    async def _status(self, task: TaskId) -> State:
        status: Any = await self._dbos.get_workflow_status_async(task)
        if status is None:
            raise unknown(task)
        return _STATES.get(status.status, "running")

    async def _work(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - of any task
        work = self._here(TaskId(str(self._dbos.workflow_id)), name, args, kwargs)
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _here(self, name: TaskId, task: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - a task gives what it likes
        if task not in self._tasks:
            raise BadInputError(f"{task} is none of the engine's tasks.", fix="Give it in tasks=, or a new version=.")
        started = self._started[name] = self._runtime.resume(name, self._tasks[task], *args, **kwargs)
        if name in self._begun:
            self._begun[name].set()
        try:
            return await started
        except Exception as error:
            raise failed(task, error) from error
        finally:
            del self._started[name]

    def _beat(self, leases: Leases) -> None:
        """Renew the lease and look for the dead; on a thread, since a task may hold the event loop up."""
        while not self._leaving.wait(PULSE_SECONDS):
            try:
                if not leases.renew():
                    _log.error("this worker was taken for dead, so others have its tasks: it stops them")
                    self._loop.call_soon_threadsafe(self._stop_all)
                for worker in leases.reap(self._hand_over):
                    _log.warning("worker %s is dead: its tasks go to others", worker)
            except StoreError as error:
                _log.warning("a worker's pulse failed: %s", error)

    def _stop_all(self) -> None:
        for started in self._started.values():
            started.running.cancel()

    async def _heed_cancelled(self) -> None:
        """Stop what others have cancelled."""
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            ids = [str(name) for name in self._started]
            gone: Any = await self._dbos.list_workflows_async(workflow_ids=ids, status="CANCELLED") if ids else []
            for one in gone:
                if (started := self._started.get(one.workflow_id)) is not None:
                    await started.cancel()

    def _hand_over(self, worker: str) -> object:
        # Private in DBOS, and the only way that looks whether the dead still owns them; a test pins it.
        # Private, and pinned by a contract test: nothing public takes over a dead worker's tasks.
        return self._dbos._recover_pending_workflows([worker])  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as said


def _dbos() -> "type[DBOS]":
    try:
        from dbos import DBOS  # noqa: PLC0415 - an optional package, whose import takes long
    except ModuleNotFoundError as error:
        raise MissingExtraError("Durable tasks", "runtime") from error
    return DBOS


def _only(path: Path) -> IO[bytes]:
    """Hold the file for this process alone, and set it to a write-ahead log, in which reading waits for no writer."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f"{path.name}.lock").open("ab")
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error}.", fix="Name another file.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode = WAL")
        db.close()
    except OSError as error:
        lock.close()
        raise BadInputError(
            f"Another process has the tasks of {path} open.", fix="Stop it, or use PostgreSQL for several workers."
        ) from error
    except sqlite3.DatabaseError as error:
        lock.close()
        raise StoreError(f"{path} cannot be used: {error}.", fix="Name another file.") from error
    return lock
