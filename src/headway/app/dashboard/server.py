"""The dashboard's server: on the gateway's event loop and on loopback."""

import asyncio

from starlette.types import ASGIApp

from headway.app.loopback import LoopbackServer, listening


class Dashboard:
    """Serves ``app`` on 127.0.0.1 from `start` to `stop`."""

    def __init__(self, app: ASGIApp) -> None:
        self._server = LoopbackServer(app, lifespan="off")
        self._serving: asyncio.Task[None] | None = None

    async def start(self, port: int) -> str:
        """Listen on ``port``, 0 being a free one; returns the URL.

        Raises:
            BadInputError: the port cannot be listened on.
        """
        fix = "Choose another --admin-port (0 for a free one), or --no-admin."
        listener = listening(port, f"The dashboard cannot listen on 127.0.0.1:{port}", fix)
        self._serving = asyncio.create_task(self._server.serve([listener]), name="headway dashboard")
        await self._server.up.wait()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def stop(self) -> None:
        """Listen no more; requests under way have a second to end."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
