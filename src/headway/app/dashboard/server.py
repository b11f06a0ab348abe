"""The dashboard's server: uvicorn on the gateway's event loop and on loopback, leaving signals to the gateway."""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from starlette.types import ASGIApp

from headway.core.errors import BadInputError

_GRACE_SECONDS = 1


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals alone: they are the gateway's."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


class Dashboard:
    """Serves ``app`` on 127.0.0.1 from `start` to `stop`."""

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self, port: int) -> str:
        """Listen on ``port``, 0 being a free one; returns the URL.

        Raises:
            BadInputError: the port cannot be listened on.
        """
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            listener.close()
            raise BadInputError(
                f"The dashboard cannot listen on 127.0.0.1:{port}: {error.strerror}.",
                fix="Choose another --admin-port (0 for a free one), or --no-admin.",
            ) from error
        self._serving = asyncio.create_task(self._server.serve([listener]), name="headway dashboard")
        await self._server.up.wait()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def stop(self) -> None:
        """Listen no more; requests under way have a second to end."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
