"""Agents on real replicas: how long their tasks take under each routing policy, with no header that names them.

    python benchmarks/replicas.py [--quick] [--minutes 7.5] [--policy NAME …]

Two local engines of one thread, two slots and little memory for prompts; recorded coding sessions are played through
`headway serve`, all of them at once, a fresh service and cold caches for each policy. Described in
benchmarks/README.md. Needs the recordings (`shared/data` beside this checkout, or --data) and the local model
(`headway models pull`); without either it says so and measures nothing.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median

import msgspec
from msgspec import Struct

from headway.core.errors import HeadwayError
from headway.gateway.models import find
from rig.agents import BadAnswerError, Outcome, Session, play, sessions
from rig.build import compiler
from rig.machine import this_machine
from rig.processes import ChildFailedError, child, first_line
from rig.service import HEADWAY

SHARED = Path(__file__).parents[2] / "shared" / "data"
OUT = Path("out/bench")
MANY, FEW = 8, 2
"""Sessions that fill the fleet, and that do not."""
SEED = 7
OURS, ROUND_ROBIN, SGLANG = "headway", "round-robin", "cache-aware"
POLICIES = {
    ROUND_ROBIN: "round robin",
    "least-loaded": "least load",
    SGLANG: "SGLang's rule",
    "session-home": "session home",
    OURS: "Headway",
}
_TOLD = (OURS, SGLANG, ROUND_ROBIN, "session-home", "least-loaded")
"""What targets speak of comes first, so that it is what there is time for."""

_CONFIG = """
[gateway]
port = 0
admin = false
store = "spans.db"
policy = "{policy}"

[embedded]
replicas = 2
threads = 1
slots = 2
context = 2048
cache_mib = 64
"""
_SCHEDULE = """
[schedule]
order = "least-attained"
"""


class Run(Struct, frozen=True, kw_only=True):
    """All sessions once, under one policy."""

    policy: str
    agents: int
    load_average: float
    """Before it began."""
    outcomes: list[Outcome]

    @property
    def mean(self) -> float:
        """Seconds of a task."""
        return mean(one.seconds for one in self.outcomes)

    @property
    def worst(self) -> float:
        """Seconds of the slowest task."""
        return max(one.seconds for one in self.outcomes)

    def ttft(self, share: float) -> float:
        """Percentile of all calls, in seconds."""
        ordered = sorted(call.ttft for one in self.outcomes for call in one.calls)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def computed(self) -> int:
        """Tokens of prompts that the engines computed."""
        return sum(call.computed for one in self.outcomes for call in one.calls)


@contextmanager
def serving(policy: str, folder: Path) -> Generator[int]:
    """`headway serve` with two engines of its own; its port."""
    text = _CONFIG.format(policy="expected-seconds" if policy == OURS else policy)
    config, log = folder / "headway.toml", folder / "log"
    config.write_text(text + _SCHEDULE if policy == OURS else text)
    with child([str(HEADWAY), "serve", "--config", str(config), "--json"], None, log) as process:
        url = json.loads(first_line(process, log))["url"]
        yield int(url.rpartition(":")[2].split("/")[0])


def run(policy: str, agents: list[Session]) -> Run:
    """A fresh service, and all agents at once."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as name, serving(policy, Path(name)) as port:
        outcomes = play(port, agents)
    return Run(policy=policy, agents=len(agents), load_average=load, outcomes=outcomes)


def measure(agents: list[Session], policies: Sequence[str], until: float) -> list[Run]:
    """Round after round of all policies, from the second on in another order each, until a run would end too late."""
    dice, runs, longest = random.Random(SEED), list[Run](), dict[str, float]()
    order = list(policies)
    while True:
        for policy in order:
            began = time.monotonic()
            if began + longest.get(policy, 0.0) > until:
                return runs
            runs.append(one := run(policy, agents))
            longest[policy] = max(longest.get(policy, 0.0), time.monotonic() - began)
            print(
                f"  {POLICIES[policy]}: mean {one.mean:.1f} s, worst {one.worst:.1f} s, "
                f"{one.computed:,} tokens computed; load average before: {one.load_average:.1f}",
                flush=True,
            )
        order = dice.sample(order, len(order))


def _typical(runs: Sequence[Run], policy: str, of: Callable[[Run], float]) -> float | None:
    values = [of(one) for one in runs if one.policy == policy]
    return median(values) if values else None


def _ratio(value: float | None, base: float | None) -> str:
    return "-" if value is None or base is None else f"{value / base:.2f}x"


def table(runs: Sequence[Run]) -> str:
    """Medians over the runs of each policy; means with their range."""
    head = f"{'':<14}{'runs':>5}{'mean task, s':>24}{'worst, s':>10}{'TTFT p50 / p95, s':>20}{'computed':>10}"
    lines = [f"{head}{'vs round robin':>16}{'vs SGLang':>11}"]
    bases = [_typical(runs, name, lambda one: one.mean) for name in (ROUND_ROBIN, SGLANG)]
    for policy in dict.fromkeys(one.policy for one in runs):
        mine = [one for one in runs if one.policy == policy]
        means = sorted(one.mean for one in mine)
        spread = f"{median(means):.1f} ({means[0]:.1f}..{means[-1]:.1f})"
        ttft = " / ".join(f"{median(one.ttft(share) for one in mine):.2f}" for share in (0.5, 0.95))
        lines.append(
            f"{POLICIES[policy]:<14}{len(mine):>5}{spread:>24}{median(one.worst for one in mine):>10.1f}{ttft:>20}"
            f"{median(one.computed for one in mine):>10,.0f}"
            f"{_ratio(median(means), bases[0]):>16}{_ratio(median(means), bases[1]):>11}"
        )
    return "\n".join(lines)


def verdicts(full: Sequence[Run], free: Sequence[Run]) -> list[str]:
    """Each target, and whether it was reached; nothing is said of what was not measured."""
    ours = _typical(full, OURS, lambda one: one.mean)
    worst = _typical(full, OURS, lambda one: one.worst)
    told: list[str] = []

    def tell(what: str, value: float | None, base: float | None, most: float) -> None:
        if value is not None and base is not None:
            told.append(f"{what}: {value / base:.2f}, at most {most:g}: {'PASS' if value <= most * base else 'over'}")

    tell("full fleet, mean task, to round robin's", ours, _typical(full, ROUND_ROBIN, lambda one: one.mean), 0.30)
    tell("full fleet, mean task, to that of SGLang's rule", ours, _typical(full, SGLANG, lambda one: one.mean), 0.55)
    others = [_typical(full, name, lambda one: one.worst) for name in POLICIES if name != OURS]
    tell("full fleet, worst task, to the best of the others", worst, _least(others), 1.0)
    others = [_typical(free, name, lambda one: one.mean) for name in POLICIES if name != OURS]
    tell(
        "fleet with room, mean task, to the best of the others",
        _typical(free, OURS, lambda one: one.mean),
        _least(others),
        1.0,
    )
    return told


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three policies, each once: about three minutes")
    parser.add_argument("--minutes", type=float, default=7.5, help="time to spend; what no longer fits is left out")
    parser.add_argument("--policy", action="append", choices=list(POLICIES), help="only these; may be repeated")
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of the recordings")
    return parser.parse_args()


def main() -> int:
    """Measure, print, write."""
    options = _arguments()
    try:
        find()
        agents = sessions(options.data / "workloads", MANY)
    except HeadwayError as error:
        print(f"replicas: skipped, there is no local model: {error}")
        return 0
    if len(agents) < MANY:
        print(f"replicas: skipped, no recorded sessions of mini-swe-agent in {options.data}")
        return 0
    quick = (
        [OURS, SGLANG, ROUND_ROBIN] if options.quick else [OURS, SGLANG, ROUND_ROBIN, "session-home", "least-loaded"]
    )
    policies = options.policy or quick
    seconds = 150.0 if options.quick else 60.0 * options.minutes
    print(f"Replicas. {this_machine(compiler()).line()}")
    print(
        "2 engines of 1 thread, 2 slots x 2,048 tokens, 64 MiB for prompts; sessions of 6 calls, 24 tokens each",
        flush=True,
    )
    started = time.monotonic()
    try:
        print(f"{FEW} sessions, which leave room:")
        free = measure(agents[:FEW], policies, started + 0.2 * seconds)
        print(f"{MANY} sessions, which fill the fleet:")
        full = measure(agents, policies, started + seconds)
    except (BadAnswerError, ChildFailedError) as error:
        print(f"the replicas were not measured: {error}", file=sys.stderr)
        return 1
    print(f"\n{FEW} sessions\n{table(free)}\n\n{MANY} sessions\n{table(full)}\n")
    print("\n".join(verdicts(full, free)))
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"replicas-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(msgspec.to_builtins([*free, *full]), indent=1) + "\n")
    print(f"every call: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
