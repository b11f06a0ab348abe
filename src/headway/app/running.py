"""`headway serve` as a whole, from start to graceful end: in one process, or in several that one looks after."""

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final, Protocol

from headway.app.beside import Beside
from headway.app.reloading import RELOAD_ACTION, RELOAD_PATH, Reload, Reloading
from headway.app.service import Front, Ready, Service
from headway.app.stopping import on_hangup, signals, unless
from headway.app.workers.supervisor import Several
from headway.gateway.admin import Changed, Order
from headway.gateway.door_opening import declare_tenants

_LOG: Final = logging.getLogger(__name__)


class Running(Protocol):
    """What serves."""

    async def start(self) -> Ready:
        """Start everything.

        Raises:
            HeadwayError: something could not be started.
        """
        ...

    def on_reload(self, reload: Reload) -> None:
        """Have this done when somebody who may asks for it."""
        ...

    async def change(self, service: Service) -> None:
        """Serve this from now on."""
        ...

    async def in_flight(self) -> int:
        """Calls under way."""
        ...

    async def close(self, seconds: float) -> None:
        """Let no more calls in; those under way have so long to end. What they were served with is ended later."""
        ...


async def serve(
    service: Service, announce: Callable[[Ready], None], read: Callable[[], Service] | None = None
) -> signal.Signals | None:
    """Serve until SIGTERM or SIGINT, then let calls under way end; a second signal ends them at once.

    Nothing that was started is left when this returns or raises.

    Args:
        service: what to serve.
        announce: told when all is ready.
        read: what to serve as it is written down now, asked at SIGHUP; ``None``: nothing is written down.

    Returns:
        The signal that broke off the start; ``None``: it has served.

    Raises:
        HeadwayError: something could not be started.
    """
    drain, at_once = asyncio.Event(), asyncio.Event()
    async with AsyncExitStack() as stack:
        told = stack.enter_context(signals(drain, at_once))
        running: Running = Alone(service, stack) if _alone(service) else Several(service, stack)
        reloading = Reloading(service, running, read)
        running.on_reload(reloading.reload)
        ready = await unless(drain, _started(running, announce))
        stack.enter_context(on_hangup(reloading.on_signal))
        await drain.wait()
        calls = await running.in_flight()
        _LOG.info(
            "stopping: %s under way, %g s for them to end; signal again to stop at once",
            "1 call" if calls == 1 else f"{calls} calls",
            service.drain,
            extra={"event": "stopping"},
        )
        await unless(at_once, running.close(service.drain))
    _LOG.info("stopped", extra={"event": "stopped"})
    return None if ready else told[0]


def _alone(service: Service) -> bool:
    """Whether one process will do: what is shared with other machines takes workers that share the seed of digests."""
    return service.workers == 1 and service.tasks.redis is None


async def _started(running: Running, announce: Callable[[Ready], None]) -> None:
    announce(await running.start())


class Alone:
    """All in this process."""

    def __init__(self, service: Service, stack: AsyncExitStack) -> None:
        self._service = service
        self._beside = Beside(service, stack)
        self._front = Front(service, self._beside.fleet, stack)
        self._front.gateway.further_metrics = self._beside.page

    async def start(self) -> Ready:
        """Start everything, the port first: that one is taken is the likeliest failure, and the quickest to see."""
        self._beside.reserve_engines()
        host, port = await self._front.start(self._service.port)
        return await self._beside.start(host, port, self._front.gateway.upstream.fetch)

    def on_reload(self, reload: Reload) -> None:
        """Have this done when it is asked for at the admin face."""

        async def reloaded(_: Order) -> Changed:
            return (await reload()).changed()

        self._front.gateway.admin.on_change("POST", RELOAD_PATH, RELOAD_ACTION, reloaded, needs="manage")

    async def change(self, service: Service) -> None:
        """Serve this from now on; see `Front.change`."""
        if service.keeping is not None:
            await asyncio.to_thread(declare_tenants, service.keeping)
        await self._beside.add_replicas(service)
        await self._front.change(service)
        self._beside.remove_replicas(service)
        self._front.gateway.upstream.keep(self._beside.fleet)

    async def in_flight(self) -> int:
        """Calls under way."""
        return sum(load.in_flight for load in self._beside.fleet.view().loads)

    async def close(self, seconds: float) -> None:
        """Let calls under way end."""
        await self._front.gateway.close(seconds)
