"""Headway as a platform team runs it: `headway serve` with a key, limits, routing by prefix, receipts and recording."""

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.core.access import Tenant, TenantId
from headway.core.limits import CallerLimits, Limit, TaskLimits
from headway.gateway.access_file import AccessFile
from headway.gateway.keys import Change, KeySettings, create_key, create_tenant
from headway.gateway.registry import Registry, SqliteDatabase
from rig.processes import Cores, child, first_line
from rig.servers import Seen, Server

HEADWAY = Path(sys.executable).parent / "headway"
_MUCH = Limit(10**12, warn=9 * 10**11)
_SERIES = re.compile(r'^(?P<name>\w+)(?:\{(?:.*evidence="(?P<evidence>[^"]*)".*|[^}]*)\})? (?P<value>\S+)$')

_CONFIG = """
[gateway]
port = 0
admin = false
store = "spans.db"

[schedule]

[keys]
store = "access.db"

[[replicas]]
id = "mock"
url = "http://127.0.0.1:{engine}/v1"
models = ["mock"]
"""


def _new_key(path: Path) -> str:
    """A key under limits of all kinds, none of which a benchmark reaches; the secret of it."""
    registry = Registry(SqliteDatabase(AccessFile(path)))
    made = Change("cli:bench", time.time())
    tenant = CallerLimits(tokens_per_minute=_MUCH, concurrency=_MUCH, money_per_month=_MUCH)
    create_tenant(registry, Tenant(id=TenantId("bench"), limits=tenant), made)
    limits = CallerLimits(requests_per_minute=_MUCH, tokens_per_minute=_MUCH, money_per_day=_MUCH)
    task = TaskLimits(calls=_MUCH, tokens=_MUCH, money=_MUCH)
    try:
        return create_key(registry, "bench", KeySettings(role="operator", limits=limits, task=task), made).secret
    finally:
        registry.close()


@contextmanager
def service(name: str, engine: Server, cores: Cores, folder: Path, seen: list[Seen]) -> Generator[Server]:
    """All of it in front of the mock engine, on one core, the process that watches its store included.

    ``seen`` receives what its page of metrics says at the end.
    """
    home = folder / name
    home.mkdir()
    key = _new_key(home / "access.db")
    config, log = home / "headway.toml", home / "log"
    config.write_text(_CONFIG.format(engine=engine.port))
    command = [str(HEADWAY), "serve", "--config", str(config), "--json"]
    with child(command, cores.served, log) as process:
        server = Server(name, _port(process, log), process.pid, key)
        yield server
        seen.append(_seen(server))


def _port(process: subprocess.Popen[str], log: Path) -> int:
    return int(json.loads(first_line(process, log))["url"].rpartition(":")[2].split("/")[0])


def _seen(server: Server) -> Seen:
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/metrics", headers={"Authorization": f"Bearer {server.key}"}
    )
    with urllib.request.urlopen(request, timeout=10) as page:  # noqa: S310 - as above
        values = list(_values(page.read().decode()))
    totals = {name: value for name, evidence, value in values if not evidence}
    return Seen(
        recorded=totals["headway_spans_recorded_total"],
        dropped=totals["headway_spans_dropped_total"],
        evidence={evidence: value for name, evidence, value in values if name == "headway_task_identity_total"},
    )


def _values(page: str) -> Iterator[tuple[str, str, int]]:
    for line in page.splitlines():
        if (found := _SERIES.match(line)) is not None and found["name"].startswith("headway_"):
            yield found["name"], found["evidence"] or "", round(float(found["value"]))
