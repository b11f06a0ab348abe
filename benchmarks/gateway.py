"""What the gateway costs: CPU per request and per streamed chunk, and latency added, beside nginx and no gateway.

    python benchmarks/gateway.py [--quick]

One core serves, the other carries the mock engine and the load generator. Servers take turns within each round; a
figure is the median of its rounds, with their range. The method is described in benchmarks/README.md.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from rig.build import CannotBuildError, compiler
from rig.figures import ALL, BARE, FULL, HEADINGS, NGINX, Figure, added, figure, table
from rig.machine import Machine, nginx_path, this_machine
from rig.processes import ChildFailedError, Cores
from rig.rounds import Loader, Round, WrongAnswerError, interleave
from rig.servers import Pace, Seen, headway, mock_engine, nginx
from rig.service import service
from rig.traffic import Traffic, agent_traffic, question_traffic, stream_events, stream_traffic

TOKENS, BURST_TOKENS = 64, 512
OUT = Path("out/bench")
RATIOS = ((ALL, NGINX), (FULL, NGINX), (BARE, NGINX))


class Case(Struct, frozen=True, kw_only=True):
    """One kind of traffic, and what is read off its rounds."""

    name: str
    traffic: Traffic
    connections: tuple[int, ...]
    figures: Callable[[Sequence[Round]], list[Figure]]
    events: tuple[bytes, ...] = stream_events(TOKENS)
    pace: Pace = Pace()
    stretch: float = 1.0
    """How many times the usual length a round has: paced streams need longer to tell anything."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What one case came to."""

    case: str
    rounds: list[Round]
    figures: list[Figure]
    seen: dict[str, Seen]
    """By server, what those say who record."""


class Report(Struct, frozen=True, kw_only=True):
    """What is written to `OUT`."""

    at: str
    machine: Machine
    load_average: float
    rounds: int
    seconds: float
    outcomes: list[Outcome]


def _at(rounds: Sequence[Round], connections: int) -> list[Round]:
    return [one for one in rounds if one.connections == connections]


def _question_figures(rounds: Sequence[Round]) -> list[Figure]:
    def rate(connections: int) -> Figure:
        return figure(
            f"answers, 306 B, c{connections}",
            "/s",
            _at(rounds, connections),
            lambda one: one.answers / one.seconds,
            higher_is_better=True,
        )

    def latency(connections: int, targets: dict[str, float] | None = None) -> list[Figure]:
        few = _at(rounds, connections)
        return [
            added(f"added p50, 306 B, c{connections}", "ms", few, lambda one: one.p50_us / 1000),
            added(f"added p99, 306 B, c{connections}", "ms", few, lambda one: one.p99_us / 1000, targets=targets),
        ]

    (cpu,) = _cpu_figures("306 B", {ALL: 70, FULL: 55}, 16)(_at(rounds, 16))
    return [cpu, rate(1), rate(16), rate(64), *latency(1), *latency(64, {ALL: 4, FULL: 4})]


def _paced_figures(rounds: Sequence[Round]) -> list[Figure]:
    chunk = {ALL: 28.0, FULL: 28.0}
    return [
        figure(
            "CPU, paced stream, c64", "µs/chunk", rounds, lambda one: one.cpu_us / TOKENS, targets=chunk, nginx_then=23
        ),
        added("added TTFT p50, paced, c64", "ms", rounds, lambda one: one.first_p50_us / 1000, targets={ALL: 1}),
        added("added TTFT p99, paced, c64", "ms", rounds, lambda one: one.first_p99_us / 1000),
    ]


def _burst_figures(rounds: Sequence[Round]) -> list[Figure]:
    def rate(one: Round) -> float:
        return one.answers * BURST_TOKENS / one.seconds

    return [
        figure("CPU, back to back, c16", "µs/chunk", rounds, lambda one: one.cpu_us / BURST_TOKENS),
        figure("chunks, back to back, c16", "/s", rounds, rate, targets={ALL: 100_000}, higher_is_better=True),
    ]


def _cpu_figures(size: str, targets: dict[str, float], nginx_then: float) -> Callable[[Sequence[Round]], list[Figure]]:
    def figures(rounds: Sequence[Round]) -> list[Figure]:
        name, unit = f"CPU, {size}, c16", "µs/request"
        return [figure(name, unit, rounds, lambda one: one.cpu_us, targets=targets, nginx_then=nginx_then)]

    return figures


def cases() -> list[Case]:
    """All that is measured."""
    return [
        Case(
            name="306 B questions",
            traffic=question_traffic(306, conversations=256),
            connections=(1, 16, 64),
            figures=_question_figures,
        ),
        Case(
            name="27 KB agent history",
            traffic=agent_traffic(27_000, conversations=16),
            connections=(16,),
            figures=_cpu_figures("27 KB", {ALL: 110, FULL: 90}, 21),
        ),
        Case(
            name="221 KB agent history",
            traffic=agent_traffic(221_000, conversations=4),
            connections=(16,),
            figures=_cpu_figures("221 KB", {ALL: 350}, 170),
        ),
        Case(
            name="paced streams, TTFT 20 ms, ITL 10 ms",
            traffic=stream_traffic(306, conversations=256, tokens=TOKENS),
            connections=(64,),
            figures=_paced_figures,
            pace=Pace(ttft=0.020, itl=0.010),
            stretch=2.0,
        ),
        Case(
            name="streams back to back",
            traffic=stream_traffic(306, conversations=256, tokens=BURST_TOKENS),
            connections=(16,),
            figures=_burst_figures,
            events=stream_events(BURST_TOKENS),
        ),
    ]


def run(case: Case, cores: Cores, *, rounds: int, seconds: float) -> Outcome:
    """Start the servers of one case, load them, stop them."""
    print(f"{case.name} …", flush=True)
    everything, full = list[Seen](), list[Seen]()
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name, ExitStack() as running:
        folder = Path(name)
        engine = running.enter_context(mock_engine(case.traffic, case.events, case.pace, cores, folder))
        off = ["--no-record", "--no-identify"]
        servers = [
            engine,
            running.enter_context(service(ALL, engine, cores, folder, everything)),
            running.enter_context(headway(FULL, [], engine, cores, folder, full)),
            running.enter_context(headway(BARE, off, engine, cores, folder, [])),
        ]
        if (path := nginx_path()) is not None:
            servers.append(running.enter_context(nginx(path, engine, cores, folder)))
        loader = Loader(case.traffic, engine, cores, folder)
        kept = interleave(loader, servers, case.connections, rounds=rounds, seconds=seconds * case.stretch)
    return Outcome(case=case.name, rounds=kept, figures=case.figures(kept), seen={ALL: everything[0], FULL: full[0]})


def _remarks(outcome: Outcome) -> list[str]:
    """What a reader must know to trust the figures of a case."""
    remarks: list[str] = []
    for server, seen in outcome.seen.items():
        calls = sum(seen.evidence.values()) or 1
        shares = ", ".join(f"{kind} {count / calls:.0%}" for kind, count in sorted(seen.evidence.items()))
        spans = f"{seen.recorded:,} spans recorded, {seen.dropped:,} dropped"
        remarks.append(f"{outcome.case}, {HEADINGS[server]}: {spans}; identity: {shares}")
    limited = sorted({(r.server, r.connections) for r in outcome.rounds if r.load_share >= 0.9})
    if limited:
        named = ", ".join(f"{server} c{connections}" for server, connections in limited)
        remarks.append(f"  mock engine or load generator was the limit (≥90 % of their core): {named}")
    return remarks


def _write(report: Report) -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"gateway-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(msgspec.to_builtins(report), indent=1) + "\n")
    return path


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute instead of five: wider ranges")
    rounds, seconds = (3, 0.25) if parser.parse_args().quick else (5, 1.5)
    try:
        machine = this_machine(compiler())
    except CannotBuildError as error:
        print(f"the gateway was not measured: {error}", file=sys.stderr)
        return 1
    cores, load_average = Cores(), os.getloadavg()[0]
    print(f"Gateway. {machine.line()}")
    print(f"gateway on core {cores.served}, mock engine and load generator on core {cores.load}", end="")
    print(f"; {rounds} rounds of {seconds} s, interleaved; load average before: {load_average:.1f}", flush=True)
    if machine.nginx is None:
        print("nginx: not installed")
    try:
        outcomes = [run(case, cores, rounds=rounds, seconds=seconds) for case in cases()]
    except (ChildFailedError, WrongAnswerError) as error:
        print(f"the gateway was not measured: {error}", file=sys.stderr)
        return 1
    print(f"\n{table([row for outcome in outcomes for row in outcome.figures], RATIOS)}\n")
    print("\n".join(line for outcome in outcomes for line in _remarks(outcome)))
    report = Report(
        at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        machine=machine,
        load_average=load_average,
        rounds=rounds,
        seconds=seconds,
        outcomes=outcomes,
    )
    print(f"every round: {_write(report)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
