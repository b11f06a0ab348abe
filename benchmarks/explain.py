"""What it takes to explain many tasks: seconds and memory, and what each stage costs a span.

    python benchmarks/explain.py [--quick | --full]

Makes recordings up (see recordings.py) in a temporary directory and runs the `headway` command on them as a user would.
Figures to reach, for the full size on two processors that do nothing else: 1,000,000 spans imported in 30 s and
explained from the archive in 5 s, 100 MB of Claude Code sessions explained in 10 s, never more than 1.5 GB of memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from headway.app.gathering import processors
from headway.trace.archive import Archive
from headway.trace.facts import facts_of
from headway.trace.filed import Filed, pack
from headway.trace.findings import findings
from headway.trace.levers import rank
from headway.trace.sources.document import Document
from headway.trace.sources.otel.traces import Traces
from headway.trace.sources.skips import Skips
from headway.trace.sources.verdict import judge
from headway.trace.study import study
from headway.trace.workers import rarely_collected
from headway.wire.otlp import from_json
from recordings import SPANS_PER_TASK, write_claude_code, write_otlp

HEADWAY = Path(sys.executable).with_name("headway")
STAGED_TASKS = 5_000
SAMPLED = 300
T = TypeVar("T")


class Size(Struct, frozen=True):
    """How much is made up."""

    tasks: int
    sessions: int
    """Bytes."""


SIZES = {"quick": Size(2_500, 10_000_000), "usual": Size(10_000, 20_000_000), "full": Size(50_000, 100_000_000)}


class Ran(Struct, frozen=True):
    """A command that was run."""

    seconds: float
    cpu: float
    """Seconds of all its processes."""
    peak: int
    """Bytes that all its processes had in memory together, at most; shared pages count in each."""


def run(*arguments: str | Path) -> Ran:
    """Run `headway` and watch it.

    Raises:
        CalledProcessError: it failed.
    """
    before, began = os.times(), time.perf_counter()
    command = [str(HEADWAY), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=compiled()) as running:
        peak, ended = [0], threading.Event()
        watching = threading.Thread(target=_watch, args=(running.pid, peak, ended))
        watching.start()
        status = running.wait()
        seconds = time.perf_counter() - began
        ended.set()
        watching.join()
    if status:
        raise subprocess.CalledProcessError(status, command)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Ran(seconds, cpu, peak[0])


def compiled() -> dict[str, str]:
    """Our environment, but Python may keep what it compiles, as it does for users: else each process compiles anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _watch(pid: int, peak: list[int], ended: threading.Event) -> None:
    while not ended.wait(0.05):
        peak[0] = max(peak[0], sum(map(_resident, _family(pid))))


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


class Stages:
    """CPU time of this process by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, stage: str, what: Callable[[], T]) -> T:
        """Do it and note what it took."""
        began = time.process_time()
        done = what()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.process_time() - began
        return done


def staged(path: Path, folder: Path) -> None:
    """Print what each stage costs, one after another in this process."""
    stages, spans, skips = Stages(), 0, Skips()
    document = Document(str(path), path.stat().st_size, lambda: path.open("rb"))
    traces = Traces("otlp")
    for record in stages("read", lambda: list(document.records(skips))):
        batch = stages("decode", partial(from_json, record.data))
        spans += len(batch.spans)
        stages("canonical", partial(traces.add, batch.spans, record.where, skips))
    pieces = stages("gather", lambda: list(traces.pieces()))
    verdicts = stages("verdict", lambda: [judge(one.spans, "", one.timing, one.remarks) for one in pieces])
    cases = stages("study", lambda: [study(one.spans) for one in pieces])
    pairs = list(zip(cases, verdicts, strict=True))
    rows = stages("facts", lambda: [facts_of(case, verdict) for case, verdict in pairs])
    packed = stages("pack", lambda: [pack(one.spans) for one in pieces])
    filed = [Filed(facts=a, verdict=b, packed=c) for a, b, c in zip(rows, verdicts, packed, strict=True)]
    with Archive(folder / "staged.headway") as archive:
        stages("store", lambda: archive.add(filed))
    whole = sum(stages.seconds.values())
    print(f"stages of {spans:,} spans in one process: µs of CPU a span, {whole / spans * 1e6:.1f} in all")
    for stage, seconds in stages.seconds.items():
        print(f"  {stage:<12}{seconds / spans * 1e6:6.1f}{seconds / whole:7.0%}")
    sample = Stages()
    sample("findings", lambda: [findings(case, verdict) for case, verdict in pairs[:SAMPLED]])
    sample("levers", lambda: [rank(case) for case, _ in pairs[:SAMPLED]])
    print(f"a task of the sample, {SPANS_PER_TASK} spans, ms of CPU")
    for stage, seconds in sample.seconds.items():
        print(f"  {stage:<12}{seconds / SAMPLED * 1e3:6.2f}")


def loop() -> float:
    """CPU milliseconds of a fixed piece of Python, the median of five: what the machine gives at the moment."""
    times: list[float] = []
    for _ in range(5):
        began, counts = time.process_time(), dict[int, int]()
        for i in range(300_000):
            counts[i % 977] = counts.get(i % 977, 0) + i
        times.append(time.process_time() - began)
    return statistics.median(times) * 1e3


def told(what: str, ran: Ran, target: float) -> None:
    """Print a figure beside what is to be reached; the seconds to reach are those of the full size in proportion."""
    print(
        f"  {what:<44}{ran.seconds:7.1f} s{ran.cpu:8.1f} s CPU{ran.peak / 1e6:8.0f} MB"
        f"{ran.seconds / target:7.2f} x the {target:.1f} s to reach",
        flush=True,
    )


def main() -> int:
    """Print the figures; 1 only when they could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", dest="size", action="store_const", const="quick", default="usual", help="a twentieth"
    )
    parser.add_argument("--full", dest="size", action="store_const", const="full", help="1,000,000 spans and 100 MB")
    size, full = SIZES[parser.parse_args().size], SIZES["full"]
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as scratch:
        folder = Path(scratch)
        staged_file, traces, sessions = folder / "staged.jsonl", folder / "traces.jsonl", folder / "sessions"
        archive = folder / "traces.headway"
        write_otlp(staged_file, min(STAGED_TASKS, size.tasks), seed=2)
        with rarely_collected():
            staged(staged_file, folder)
        run("explain", staged_file)  # so that all that the commands import is compiled
        spans = write_otlp(traces, size.tasks)
        written = write_claude_code(sessions, size.sessions)
        share, part = size.tasks / full.tasks, size.sessions / full.sessions
        machine = f"{processors()} processors, load {os.getloadavg()[0]:.1f}, a fixed loop {loop():.0f} ms"
        print(f"{spans:,} spans in {traces.stat().st_size / 1e6:,.0f} MB of OTLP; {machine}")
        told("headway import --into ARCHIVE", run("import", traces, "--into", archive), 30 * share)
        print(f"  {'the archive':<44}{archive.stat().st_size / 1e6:7.1f} MB")
        told("headway explain ARCHIVE", run("explain", archive), max(5 * share, 1.0))
        told("headway explain TRACES, without an import", run("explain", traces), 30 * share + max(5 * share, 1.0))
        print(f"{written / 1e6:,.0f} MB of Claude Code sessions")
        told("headway explain FOLDER", run("explain", sessions), 10 * part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
