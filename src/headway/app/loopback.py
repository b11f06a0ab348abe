"""A web server on 127.0.0.1 that runs beside other work on one event loop, and leaves signals to the command."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Final, Literal

import uvicorn
from starlette.types import ASGIApp

from headway.core.errors import BadInputError

_GRACE_SECONDS: Final = 1


class LoopbackServer(uvicorn.Server):
    """Serves ``app`` by `serve`, on sockets from `listening`; requests under way at the end have a second.

    Args:
        app: what is served.
        lifespan: whether it wants to be told of start and end.
    """

    def __init__(self, app: ASGIApp, *, lifespan: Literal["on", "off"]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="httptools",
                ws="none",
                lifespan=lifespan,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self.up = asyncio.Event()
        """Set when it answers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, and tell of it."""
        await super().startup(sockets)
        self.up.set()


def listening(port: int, trouble: str, fix: str) -> socket.socket:
    """A socket bound to ``port`` of 127.0.0.1, 0 being a free one.

    Args:
        port: which.
        trouble: what the error says, before the reason, where it cannot be had.
        fix: what the reader can do then.

    Raises:
        BadInputError: it cannot be listened on.
    """
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise BadInputError(f"{trouble}: {error.strerror}.", fix=fix) from error
    return listener
