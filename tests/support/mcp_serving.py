"""Servers of tools for tests, those of `mcp_server` and `mcp_raw_server`, and asking them."""

import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from headway.runtime import McpCommand, McpServers, Run, Runtime, Tool, task

_HERE = Path(__file__).parent
PROGRAM = (sys.executable, str(_HERE / "mcp_server.py"))


def raw(how: str, **options: Any) -> McpCommand:  # noqa: ANN401 - those of McpCommand
    """A server that misbehaves below the protocol."""
    return McpCommand(name="it", command=(sys.executable, str(_HERE / "mcp_raw_server.py"), how), **options)


def tools_of(servers: McpServers) -> dict[str, Tool]:
    """By the server's own names."""
    return {tool.name.removeprefix("it__"): tool for tool in servers.tools}


async def in_task(body: Callable[[Run], Awaitable[Any]], **options: Any) -> Any:  # noqa: ANN401 - whatever the body gives
    """Run ``body`` as a task."""

    @task()
    async def made(run: Run) -> Any:  # noqa: ANN401 - as above
        return await body(run)

    async with Runtime(**options) as runtime:
        return await runtime.start(made)


async def use(tool: Tool, **arguments: Any) -> tuple[str, bool]:  # noqa: ANN401 - JSON
    """What a model is told, and whether the call failed."""
    result = await in_task(lambda run: tool.use(run, arguments))
    return result.text, result.failed


def free_port() -> int:
    """A port that nobody listens on now."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def over_http(port: int) -> Generator[str]:
    """The server at a port, until the end; it gives the URL."""
    with subprocess.Popen([*PROGRAM, str(port)]) as process:  # noqa: S603 - our own
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until it answers; it says nowhere when it does."""
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "the server ended"
        time.sleep(0.02)
