"""Scheduling in virtual time: task times, goodput under overload and batch beside interactive, on modelled engines.

No measurement of a real engine: `tests/support/virtual.py` says what is modelled. It takes about a minute.
"""

import sys
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from fleets import LARGE, SMALL, coding, goodput, late, mean, ours, poisson  # noqa: E402 - above
from virtual import ran  # noqa: E402 - its folder is put in reach just above

from headway.policy.routing.cache_aware import CacheAware  # noqa: E402 - as above
from headway.policy.routing.round_robin import RoundRobin  # noqa: E402 - as above


def task_time() -> None:
    """Mean task time, memory short, against rules that see one call at a time."""
    print("Mean task time where memory is short (targets: 0.30 of round robin, 0.55 of SGLang's rule)")
    shares: list[tuple[float, float]] = []
    for seed in (1, 2, 3):
        sessions = coding(40, rate=0.3, seed=seed)
        scheduled = mean(ran(sessions, ours(), SMALL))
        around, aware = mean(ran(sessions, RoundRobin(), SMALL)), mean(ran(sessions, CacheAware(), SMALL))
        shares.append((scheduled / around, scheduled / aware))
        one, other = shares[-1]
        print(f"  seed {seed}: {scheduled:.1f} s, {one:.2f} of {around:.0f} s, {other:.2f} of {aware:.0f} s")
    print(f"  mean: {fmean(one for one, _ in shares):.2f} and {fmean(other for _, other in shares):.2f}")


def overload() -> None:
    """Tasks done in time at ten times the load that the fleet can serve."""
    peak, overloaded = goodput(1.25, ours()), goodput(12.5, ours())
    print(f"Goodput at 10 times the load: {overloaded / peak:.2f} of its peak of {peak:.2f} tasks/s (target: 0.90)")


def batch() -> None:
    """Interactive sessions with and without a flood of batch."""
    interactive = poisson(0.6, 160.0, seed=3)
    alone = late(ran(interactive, ours(), LARGE, until=400).outcomes, 0.99)
    flood = interactive + poisson(10.0, 160.0, seed=9, lane="batch")
    flooded = late(ran(flood, ours(), LARGE, until=400).outcomes, 0.99)
    print(
        f"Interactive p99 beside a flood of batch: TTFT {flooded[0] / alone[0]:.2f}, "
        f"task time {flooded[1] / alone[1]:.2f} times alone (target: 1.20)"
    )


if __name__ == "__main__":
    task_time()
    overload()
    batch()
