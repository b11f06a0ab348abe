"""Rounds of load: one after another through every server of a case, again and again, so that drift meets all alike."""

import json
import resource
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from rig.build import build
from rig.processes import Cores, cpu_seconds, pinned, settled_cpu
from rig.servers import Server
from rig.traffic import Traffic

MOST_REQUESTS = 2_000_000


class WrongAnswerError(Exception):
    """A server answered wrongly or not at all: there is nothing to measure."""


class Round(Struct, frozen=True, kw_only=True):
    """One closed loop of load through one server. Times in microseconds unless named otherwise."""

    server: str
    connections: int
    answers: int
    seconds: float
    p50_us: float
    p99_us: float
    first_p50_us: float
    """From the request's first byte sent to the first token received."""
    first_p99_us: float
    cpu_us: float
    """CPU of the server for one answer, user and system, work that it put off included."""
    load_share: float
    """Share of their core that mock engine and load generator used; near 1 they, not the server, were the limit."""


def _own_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Loader:
    """Runs the load generator with one case's traffic."""

    def __init__(
        self, traffic: Traffic, engine: Server, cores: Cores, folder: Path, *, requests: int = MOST_REQUESTS
    ) -> None:
        self._engine, self._cores = engine, cores
        corpus, expect, anything = folder / "corpus.jsonl", folder / "expect", folder / "anything"
        corpus.write_bytes(b"\n".join(traffic.bodies))
        expect.write_bytes(traffic.answer)
        anything.touch()
        self._command = [str(build("load")), "--corpus", str(corpus), "--turns", str(traffic.turns)]
        self._command += ["--requests", str(requests)]
        self._exact = ["--expect", str(expect), "--mark", str(traffic.mark)]
        self._loose = ["--expect", str(anything), "--mark", "1"]

    def run(self, server: Server, connections: int, seconds: float) -> Round:
        """One round.

        Raises:
            WrongAnswerError: an answer was wrong or missing; the message says what came instead.
        """
        load = ["--port", str(server.port), "--connections", str(connections), "--seconds", str(seconds)]
        load += ["--key", server.key, *(self._loose if server.rewrites else self._exact)]
        served, mocked, generated = cpu_seconds(server.pid), cpu_seconds(self._engine.pid), _own_children()
        with pinned(self._cores.load):
            done = subprocess.run([*self._command, *load], capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            msg = f"{server.name}, {connections} connections: {done.stderr.strip()}"
            raise WrongAnswerError(msg)
        mocked, generated = cpu_seconds(self._engine.pid) - mocked, _own_children() - generated
        counted = json.loads(done.stdout)
        served = settled_cpu(server.pid) - served
        return Round(
            server=server.name,
            connections=connections,
            cpu_us=served / counted["answers"] * 1e6,
            load_share=(mocked + generated) / counted["seconds"],
            **counted,
        )


def interleave(
    loader: Loader, servers: Sequence[Server], connections: Sequence[int], *, rounds: int, seconds: float
) -> list[Round]:
    """Warm every server up, then load them in turn; each round starts with another server than the one before."""
    for server in servers:
        loader.run(server, max(connections), min(0.3, seconds))
    kept: list[Round] = []
    for number in range(rounds):
        started = time.monotonic()
        for count in connections:
            turn = number % len(servers)
            kept += [loader.run(server, count, seconds) for server in (*servers[turn:], *servers[:turn])]
        print(f"  round {number + 1}/{rounds}: {time.monotonic() - started:.0f} s", flush=True)
    return kept
