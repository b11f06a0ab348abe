"""One embedded engine: its process started, watched, restarted when it dies, and stopped."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from msgspec import Struct

from headway.core.errors import EngineError
from headway.core.fleet import Replica, ReplicaId
from headway.gateway.engine_child import running
from headway.gateway.engine_process import Launch

OnChange = Callable[[ReplicaId, bool, str], None]
"""Told of an engine that came up (true) or went down (false), and why. The log has been told why it went down."""

_LOG = logging.getLogger(__name__)


class Supervision(Struct, frozen=True, kw_only=True):
    """How an engine is watched, and how often it may fail. Seconds."""

    start_seconds: float = 600.0
    """From its start until the weights are loaded; large ones on a slow disk take minutes."""
    stop_seconds: float = 3.0
    """From SIGTERM to SIGKILL."""
    probe_seconds: float = 5.0
    """Between two questions whether it is well, and the longest wait for an answer."""
    misses: int = 6
    """Unanswered questions in a row after which it is hung and is killed."""
    restarts: int = 5
    """In a row; one more failure and it stays down."""
    settled_seconds: float = 60.0
    """An engine that served for this long has earned all its restarts again."""
    backoff_seconds: float = 0.2
    """Before the first restart; doubled for each one after it."""
    longest_backoff_seconds: float = 10.0


class Engine:
    """One replica and the process behind it. Its URL stays the same over restarts."""

    def __init__(self, replica: Replica, launch: Launch, on_change: OnChange, supervision: Supervision) -> None:
        self.replica = replica
        self.pid: int | None = None
        """Of the process that serves now; ``None`` while there is none."""
        self._launch = launch
        self._on_change = on_change
        self._supervision = supervision
        self._supervisor: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when the engine serves.

        Raises:
            EngineError: it did not come up; with what it said last.
        """
        loop = asyncio.get_running_loop()
        up: asyncio.Future[None] = loop.create_future()
        self._supervisor = loop.create_task(self._supervise(up))
        await asyncio.wait([up, self._supervisor], return_when=asyncio.FIRST_COMPLETED)
        if self._supervisor.done():
            await self._supervisor

    async def stop(self) -> None:
        """End the process, and the watch over it; nothing is left when this returns."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait([self._supervisor])

    async def _supervise(self, up: asyncio.Future[None]) -> None:
        rules, failures, clock = self._supervision, 0, asyncio.get_running_loop().time
        while True:
            async with running(self._launch, rules.stop_seconds) as child:
                began = clock()
                if await child.ready(rules.start_seconds):
                    serving = clock()
                    with self._serving(child.pid, serving - began, up):
                        why = await child.until_down(rules.probe_seconds, rules.misses)
                    failures = 0 if clock() - serving >= rules.settled_seconds else failures
                else:
                    why = child.ending or f"was not ready within {rules.start_seconds:g} s"
            if not up.done():
                raise self._not_started(why, child.last_words())
            failures += 1
            if failures > rules.restarts:
                self._give_up(why, child.last_words())
                return
            pause = min(rules.longest_backoff_seconds, rules.backoff_seconds * 2 ** (failures - 1))
            again = f"{why}; restart {failures} of {rules.restarts}"
            told = {"event": "replica_down", "replica": self.replica.id}
            _LOG.warning("replica %s is down: %s in %.1f s", self.replica.id, again, pause, extra=told)
            self._tell(again, healthy=False)
            await asyncio.sleep(pause)

    @contextmanager
    def _serving(self, pid: int, seconds: float, up: asyncio.Future[None]) -> Generator[None]:
        self.pid = pid
        try:
            self._tell(f"ready after {seconds:.1f} s", healthy=True)
            if not up.done():
                up.set_result(None)
            yield
        finally:
            self.pid = None

    def _not_started(self, why: str, words: str) -> EngineError:
        return EngineError(
            f"The embedded engine {self.replica.id} did not start: it {why}. Its last words:\n{words}\n",
            fix=f"See that {self._launch.weights} is a whole model, and that there is memory for "
            f"{self._launch.slots} slots of {self._launch.context} tokens.",
        )

    def _give_up(self, why: str, words: str) -> None:
        reason = f"{why}; gave up after {self._supervision.restarts} restarts"
        told = {"event": "replica_down", "replica": self.replica.id}
        _LOG.error("replica %s is down: %s. Its last words:\n%s", self.replica.id, reason, words, extra=told)
        self._tell(reason, healthy=False)

    def _tell(self, reason: str, *, healthy: bool) -> None:
        self._on_change(self.replica.id, healthy, reason)
