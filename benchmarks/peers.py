"""Headway with all its features beside other gateways and nginx: CPU, latency added and streams, in one run.

    python benchmarks/peers.py [--quick] [--minutes 4.5]

Peers are installed on first use, each in an environment of its own in the user's cache, pinned; one that cannot be
installed or started here is named with the reason. All have one core; client, mock engine and method are those of
gateway.py. Described in benchmarks/README.md.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec
from msgspec import Struct

from rig.build import CannotBuildError, compiler
from rig.figures import ALL, DIRECT, NGINX, Figure, added, figure, table
from rig.machine import nginx_path, this_machine
from rig.peers import PEERS, CannotInstallError, Peer, install, running
from rig.processes import ChildFailedError, Cores
from rig.rounds import Loader, Round, WrongAnswerError
from rig.servers import Pace, Seen, Server, mock_engine, nginx
from rig.service import service
from rig.traffic import Traffic, agent_traffic, question_traffic, stream_events, stream_traffic

OUT = Path("out/bench")
TOKENS, BURST_TOKENS = 64, 128
QUESTIONS = ("306 B, c1", "306 B, c16", "306 B, c64")
SMALL, LARGE, PACED, BURST = "27 KB, c16", "221 KB, c16", "paced stream, c64", "back to back, c16"
"""Loads, and what figures call them."""


class Load(Struct, frozen=True):
    """One kind of load, by the name that its figures have."""

    name: str
    traffic: Traffic
    connections: int
    stretch: float = 1.0
    """How many times the usual length its rounds have."""


class Group(Struct, frozen=True, kw_only=True):
    """Loads that one mock engine answers, so that no server has to be started for each of them."""

    plain: Traffic
    """Whose answer the engine gives to what asks for no stream."""
    events: tuple[bytes, ...]
    pace: Pace
    loads: tuple[Load, ...]


def groups() -> tuple[Group, ...]:
    """All that is measured."""
    question = question_traffic(306, conversations=256)
    small, large = agent_traffic(27_000, conversations=16), agent_traffic(221_000, conversations=4)
    paced = stream_traffic(306, conversations=256, tokens=TOKENS)
    burst = stream_traffic(306, conversations=256, tokens=BURST_TOKENS)
    questions = tuple(Load(name, question, count) for name, count in zip(QUESTIONS, (1, 16, 64), strict=True))
    return (
        Group(
            plain=question,
            events=stream_events(TOKENS),
            pace=Pace(ttft=0.020, itl=0.010),
            loads=(*questions, Load(PACED, paced, 64, 2.0)),
        ),
        Group(
            plain=small,
            events=stream_events(BURST_TOKENS),
            pace=Pace(),
            loads=(Load(SMALL, small, 16), Load(LARGE, large, 16), Load(BURST, burst, 16)),
        ),
    )


def figures(rounds: dict[str, list[Round]]) -> list[Figure]:
    """What is read off the rounds of each load."""

    def rate(name: str) -> Figure:
        few = rounds[name]
        return figure(f"answers, {name}", "/s", few, lambda one: one.answers / one.seconds, higher_is_better=True)

    def cpu(name: str) -> Figure:
        return figure(f"CPU, {name}", "µs/request", rounds[name], lambda one: one.cpu_us)

    def latency(name: str) -> list[Figure]:
        return [
            added(f"added p50, {name}", "ms", rounds[name], lambda one: one.p50_us / 1000),
            added(f"added p99, {name}", "ms", rounds[name], lambda one: one.p99_us / 1000),
        ]

    def chunks(one: Round) -> float:
        return one.answers * BURST_TOKENS / one.seconds

    one, some, many = QUESTIONS
    return [
        *(cpu(name) for name in (some, SMALL, LARGE)),
        *(rate(name) for name in QUESTIONS),
        *latency(one),
        *latency(many),
        figure(f"CPU, {PACED}", "µs/chunk", rounds[PACED], lambda one: one.cpu_us / TOKENS),
        added(f"added TTFT p50, {PACED}", "ms", rounds[PACED], lambda one: one.first_p50_us / 1000),
        figure(f"chunks, {BURST}", "/s", rounds[BURST], chunks, higher_is_better=True),
    ]


class Field:
    """The servers that are still in the race, and why others are not."""

    def __init__(self) -> None:
        self.out: dict[str, str] = {}

    def drop(self, name: str, why: object) -> None:
        """Leave it out from now on, and what was measured of it too."""
        self.out[name] = " ".join(str(why).split())[:400]
        print(f"  {name} is left out: {self.out[name]}", flush=True)

    def load(self, loader: Loader, server: Server, load: Load, seconds: float) -> Round | None:
        """One round; ``None``: the server is out of the race, as of now or before.

        Raises:
            WrongAnswerError: the engine itself, nginx or Headway answered wrongly: that is no peer's fault.
        """
        if server.name in self.out:
            return None
        try:
            return loader.run(server, load.connections, seconds * load.stretch)
        except WrongAnswerError as error:
            if server.name in {DIRECT, NGINX, ALL}:
                raise
            self.drop(server.name, error)
            return None


def measure(
    group: Group, field: Field, peers: dict[Peer, Path], *, rounds: int, seconds: float, until: float
) -> dict[str, list[Round]]:
    """Start all servers in front of one engine, load them in turn, stop them."""
    cores = Cores()
    kept: dict[str, list[Round]] = {load.name: [] for load in group.loads}
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        engine = stack.enter_context(mock_engine(group.plain, group.events, group.pace, cores, folder))
        servers = [engine, stack.enter_context(service(ALL, engine, cores, folder, list[Seen]()))]
        if (path := nginx_path()) is not None:
            servers.append(stack.enter_context(nginx(path, engine, cores, folder)))
        for peer, bin_ in peers.items():
            if peer.name in field.out:
                continue
            try:
                servers.append(stack.enter_context(running(peer, bin_, engine, cores, folder)))
            except ChildFailedError as error:
                field.drop(peer.name, error)
        loaders = {load.name: Loader(load.traffic, engine, cores, _subfolder(folder, load)) for load in group.loads}
        for load in group.loads:
            for server in servers:
                field.load(loaders[load.name], server, load, 0.2)
        for number in range(rounds):
            began = time.monotonic()
            turn = number % len(servers)
            for load in group.loads:
                for server in (*servers[turn:], *servers[:turn]):
                    if (one := field.load(loaders[load.name], server, load, seconds)) is not None:
                        kept[load.name].append(one)
            took = time.monotonic() - began
            print(f"  round {number + 1}/{rounds}: {took:.0f} s", flush=True)
            if time.monotonic() + took > until:
                break
    return kept


def _subfolder(folder: Path, load: Load) -> Path:
    found = folder / load.name.replace(" ", "-")
    found.mkdir()
    return found


def _installed(field: Field) -> dict[Peer, Path]:
    found: dict[Peer, Path] = {}
    for peer in PEERS:
        try:
            found[peer] = install(peer)
        except CannotInstallError as error:
            field.drop(peer.name, f"{peer.requirement} could not be installed: {error}")
    return found


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round: about a minute")
    parser.add_argument("--minutes", type=float, default=4.5, help="time to spend once peers are installed")
    options = parser.parse_args()
    rounds, seconds = (1, 0.3) if options.quick else (3, 0.6)
    field = Field()
    try:
        print(f"Peers. {this_machine(compiler()).line()}", flush=True)
    except CannotBuildError as error:
        print(f"peers were not measured: {error}", file=sys.stderr)
        return 1
    peers = _installed(field)
    print(f"{', '.join(peer.requirement for peer in peers)}; load average before: {os.getloadavg()[0]:.1f}", flush=True)
    started, kept = time.monotonic(), dict[str, list[Round]]()
    for number, group in enumerate(groups(), 1):
        until = started + 60.0 * options.minutes * number / 2
        try:
            kept |= measure(group, field, peers, rounds=rounds, seconds=seconds, until=until)
        except (ChildFailedError, WrongAnswerError) as error:
            print(f"peers were not measured: {error}", file=sys.stderr)
            return 1
    kept = {name: [one for one in some if one.server not in field.out] for name, some in kept.items()}
    names = list(dict.fromkeys(one.server for some in kept.values() for one in some))
    rows = figures(kept)
    print(f"\n{table(rows, [(ALL, name) for name in names if name not in {ALL, DIRECT}])}\n")
    for name, why in field.out.items():
        print(f"not measured: {name}: {why}")
    anew = ", ".join(peer.name for peer in peers if peer.rewrites)
    print(f"Every byte of every answer was checked; of {anew}, which writes answers anew, only that there was one.")
    print(f"every round: {_write(kept, rows)}")
    return 0


def _write(kept: dict[str, list[Round]], rows: Sequence[Figure]) -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"peers-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(msgspec.to_builtins({"rounds": kept, "figures": rows}), indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
