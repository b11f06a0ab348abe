"""The servers of a case: the mock engine, and each gateway in front of it."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from rig.build import build
from rig.processes import ChildFailedError, Cores, child, first_line, stop
from rig.traffic import Traffic

SERVE = Path(__file__).parent.parent / "serve_gateway.py"


class Pace(Struct, frozen=True, kw_only=True):
    """When a streamed answer's pieces leave the mock engine, in seconds; zeros: as fast as they are taken."""

    ttft: float = 0.0
    itl: float = 0.0


class Server(Struct, frozen=True):
    """A running server that speaks chat completions."""

    name: str
    port: int
    pid: int
    key: str = "sk-none"
    """What callers have to send."""
    rewrites: bool = False
    """It writes answers anew, so they cannot be compared byte by byte."""


class Seen(Struct, frozen=True, kw_only=True):
    """What a gateway says of the calls that it carried, once it has ended."""

    recorded: int
    dropped: int
    evidence: dict[str, int]
    """How a sample of the calls came to their task: evidence → calls."""


@contextmanager
def mock_engine(
    traffic: Traffic, events: tuple[bytes, ...], pace: Pace, cores: Cores, folder: Path
) -> Generator[Server]:
    """The mock engine, beside the load generator on its core."""
    answer, stream = folder / "answer.json", folder / "events.txt"
    answer.write_bytes(traffic.answer)
    stream.write_bytes(b"\n".join(events))
    command = [str(build("mock")), "--json", str(answer), "--stream", str(stream)]
    command += ["--ttft-us", str(round(pace.ttft * 1e6)), "--itl-us", str(round(pace.itl * 1e6))]
    log = folder / "mock.log"
    with child(command, cores.load, log) as process:
        yield Server("direct", int(first_line(process, log)), process.pid)


@contextmanager
def headway(
    name: str, flags: list[str], engine: Server, cores: Cores, folder: Path, seen: list[Seen]
) -> Generator[Server]:
    """Headway before the mock engine; ``seen`` receives what it says of itself at its end, where it records."""
    url = f"http://127.0.0.1:{engine.port}/v1"
    store = folder / f"{name}.db"
    log = folder / f"{name}.log"
    command = [sys.executable, str(SERVE), "--upstream", url, "--store", str(store), *flags]
    with child(command, cores.served, log) as process:
        port = int(json.loads(first_line(process, log))["port"])
        yield Server(name, port, process.pid)
        stop(process)
        if process.stdout is not None and (last := process.stdout.read()):
            seen.append(Seen(**json.loads(last)))


_NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 600s;
  client_max_body_size 32m; client_body_buffer_size 1m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream engine {{ server 127.0.0.1:{engine}; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 600s; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""


def free_port() -> int:
    """One that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def await_listener(port: int, process: subprocess.Popen[str], log: Path, seconds: float = 4.0) -> None:
    """Return when somebody listens on ``port``.

    Raises:
        ChildFailedError: ``process`` has ended, or nobody does after ``seconds``.
    """
    for _ in range(int(seconds / 0.02)):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    msg = f"{process.args!r} does not listen on port {port}: {log.read_text()[-2000:]}"
    raise ChildFailedError(msg)


@contextmanager
def nginx(path: str, engine: Server, cores: Cores, folder: Path) -> Generator[Server]:
    """Run nginx as a bare proxy: one process, no log, kept-alive connections on both sides, answers not buffered."""
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, engine=engine.port, port=port))
    log = folder / "nginx.log"
    with child([path, "-p", str(folder), "-c", str(config), "-e", "stderr"], cores.served, log) as process:
        await_listener(port, process, log)
        yield Server("nginx", port, process.pid)
