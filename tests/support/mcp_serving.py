"""Servers of tools for tests: those of `mcp_server` and `mcp_raw_server`, over both transports."""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

_HERE = Path(__file__).parent
PROGRAM = (sys.executable, str(_HERE / "mcp_server.py"))


def raw(how: str) -> tuple[str, ...]:
    """The command of a server that misbehaves below the protocol."""
    return (sys.executable, str(_HERE / "mcp_raw_server.py"), how)


def free_port() -> int:
    """A port that nobody listens on now."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def over_http(port: int) -> Generator[str]:
    """The server at a port, until the end; it gives the URL."""
    with subprocess.Popen([*PROGRAM, str(port)]) as process:
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
