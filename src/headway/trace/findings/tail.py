"""Over a set of tasks: the slowest are slow because they loop more often."""

from collections.abc import Iterable, Sequence
from math import log
from statistics import median
from typing import Final, Protocol

from headway.core.task import TaskId
from headway.trace.findings.figures import plural, seconds, share, times
from headway.trace.findings.finding import Finding
from headway.trace.stats import quantile, rank

TASKS: Final = 20
"""With fewer, the slowest twentieth is not even one task."""
EXPLODES: Final = 2.0
"""p95 / p50 of E2E."""
EXPLAINED: Final = 0.5
"""Share of that ratio, by logarithms, that the number of calls has to explain."""


class Account(Protocol):
    """One task of a set."""

    @property
    def task(self) -> TaskId:
        """Its id."""
        ...

    @property
    def e2e(self) -> float | None:
        """Seconds; unknown where the source keeps no times."""
        ...

    @property
    def n(self) -> int:
        """Model calls on its loop."""
        ...


def iteration_tail(accounts: Sequence[Account]) -> Iterable[Finding]:
    """p95 is several times p50, and the tasks beyond it differ from the usual ones by N more than by time per turn.

    Of a task, ``E2E = N x time per turn``, so between the usual and the slowest ``log E2E`` grows by as much as
    ``log N`` and ``log(time per turn)`` together: the share of the first is what N explains.
    """
    timed = sorted(
        (task.e2e, task.n, task.task) for task in accounts if task.e2e is not None and task.e2e > 0 and task.n > 0
    )
    if len(timed) < TASKS:
        return
    lengths = [e2e for e2e, _, _ in timed]
    p50, p95 = (lengths[rank(len(timed), q)] for q in (0.5, 0.95))
    slowest = timed[rank(len(timed), 0.95) :]
    middle = timed[rank(len(timed), 0.4) : rank(len(timed), 0.6) + 1]
    usual, often = median(n for _, n, _ in middle), median(n for _, n, _ in slowest)
    ratio = median(e2e for e2e, _, _ in slowest) / median(e2e for e2e, _, _ in middle)
    explained = log(often / usual) / log(ratio) if ratio > 1 else 0.0
    if p95 < EXPLODES * p50 or explained < EXPLAINED:
        return
    limit = sorted(n for _, n, _ in timed)[rank(len(timed), 0.9)]
    capped = sorted(e2e * min(1.0, limit / n) for e2e, n, _ in timed)
    saved = p95 - capped[rank(len(timed), 0.95)]
    if saved <= 0:
        return  # a limit that nine of ten tasks keep would not help
    bounded = quantile(lengths, 0.95).supported
    beyond = sum(n > limit for _, n, _ in timed)
    yield Finding(
        name="iteration-tail",
        title=f"p95 is {seconds(p95)}, {times(p95 / p50)} times p50, because the slowest tasks make {often:g} calls"
        f" instead of {usual:g}.",
        seconds=saved,
        confidence="likely" if bounded else "possible",
        evidence=(
            (
                f"Of {plural(len(timed), 'task')}: p50 {seconds(p50)}, p95 {seconds(p95)}; calls per task: p90"
                f" {limit:,}, most {max(n for _, n, _ in timed):,}."
            ),
            (
                f"The slowest {plural(len(slowest), 'task')} take {times(ratio)} times as long as the usual ones"
                f" and make {times(often / usual)} times as many calls: by logarithms N explains"
                f" {share(min(explained, 1.0), 1.0)} of it; the rest is time per turn."
            ),
            (
                f"With {limit:,} calls at most ({plural(beyond, 'task')} make more), at the same time per turn, p95"
                f" would be {seconds(capped[rank(len(timed), 0.95)])}."
            ),
            *(() if bounded else ("Too few tasks to bound p95 on both sides.",)),
        ),
        check="Read one of the slowest: what does it look for in its last turns? Are its turns as long as others'?",
        remedy="Limit the number of steps and answer with what is there, stop loops that make no progress, and put into"
        " the first prompt what they search for (lever: one iteration fewer).",
        tasks=tuple(task for _, _, task in reversed(slowest)),
    )
