"""The configuration read again while the gateway serves: checked, then taken over without a call being dropped."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from headway.app.changes import changes
from headway.app.service import Service
from headway.core.errors import HeadwayError
from headway.gateway.admin import Changed
from headway.gateway.policies import load
from headway.gateway.scheduling import wants_all
from headway.policy.cache.rules import CacheRules

RELOAD_PATH: Final = "/admin/reload"
RELOAD_ACTION: Final = "gateway.reload"
_LOG: Final = logging.getLogger(__name__)


class Reloaded(Struct, frozen=True):
    """What became of it."""

    made: tuple[str, ...]
    """What takes effect from now on."""
    restart: tuple[str, ...]
    """What does not until the gateway is started anew."""

    def told(self) -> str:
        """For a person."""
        made = f"changed: {', '.join(self.made)}" if self.made else "nothing to change"
        return made + (f"; only once it is started anew: {', '.join(self.restart)}" if self.restart else "")

    def changed(self) -> Changed:
        """For the admin face."""
        return Changed(answer=self, subject="configuration", detail=self.told())


Reload = Callable[[], Awaitable[Reloaded]]
"""May raise `HeadwayError`: nothing has changed."""


class Changing(Protocol):
    """What serves."""

    async def change(self, service: Service) -> None:
        """Serve this from now on."""
        ...


class Reloading:
    """Reads again, one at a time.

    Args:
        service: what is served.
        running: whoever serves it.
        read: the configuration as it is written now; ``None``: there is none to be read.
    """

    def __init__(self, service: Service, running: Changing, read: Callable[[], Service] | None) -> None:
        self._service = service
        self._running = running
        self._read = read
        self._one = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def reload(self) -> Reloaded:
        """Take over what has changed.

        Raises:
            HeadwayError: it cannot be used, with where and why; nothing has changed.
        """
        async with self._one:
            if self._read is None:
                raise HeadwayError("This gateway was started without a configuration that can be read again.")
            new = await asyncio.to_thread(self._read)
            policies = load(self._service.policy), load(new.policy)
            takes_turns = self._service.scheduling is not None or any(map(wants_all, policies))
            if new.caching is not None:
                CacheRules(new.caching.rules)
            found = changes(self._service, new, policy=not takes_turns)
            if found.made:
                await self._running.change(found.service)
            self._service = found.service
            reloaded = Reloaded(found.made, found.restart)
            _LOG.info("configuration read again: %s", reloaded.told(), extra={"event": "reloaded"})
            return reloaded

    def on_signal(self) -> None:
        """Somebody sent SIGHUP: the log says what became of it."""
        task = asyncio.get_running_loop().create_task(self._told())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self) -> None:
        try:
            await self.reload()
        except HeadwayError as error:
            _LOG.error("configuration not taken over: %s", error, extra={"event": "reload_failed"})
