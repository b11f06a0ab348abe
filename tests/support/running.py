"""The whole service, running in a test until it is told to stop."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headway.app.running import serve
from headway.app.service import Ready, Service


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def served(service: Service) -> AsyncGenerator[tuple[Ready, asyncio.Task[signal.Signals | None]]]:
    """The service, ready; it is told to stop at the end, where it was not before."""
    announced: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(service, announced.set_result))
    await asyncio.wait({serving, announced}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving
    try:
        yield await announced, serving
    finally:
        if not serving.done():
            interrupt()
        await serving
