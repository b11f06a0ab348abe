"""A set of tasks against its budget: what is kept, what is broken, by how much, by whom; and a budget to begin with."""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10, sqrt
from operator import itemgetter
from typing import Final, Literal, get_args

from msgspec import Struct

from headway.core.budget import Budget, Percentile, StageBudget
from headway.core.money import MicroUsd
from headway.core.spent import Sum
from headway.core.task import TaskId
from headway.trace.facts import TaskFacts
from headway.trace.phases import Phase
from headway.trace.stats import Quantile, quantile

PERCENTILES: Final[tuple[Percentile, ...]] = get_args(Percentile)
_SHARES: Final[dict[Percentile, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
WORST: Final = 3
_HEADROOM: Final = 1.1
"""Suggested limits lie this far above the upper end of what the set shows."""
_WORTH: Final = 0.02
"""Stages below this share of all path seconds get no limit of their own."""
_SURE: Final = 2

State = Literal["kept", "broken", "unknown"]
_WITHIN_A_CALL: Final = frozenset({Phase.QUEUE.value, Phase.PREFILL.value, Phase.DECODE.value, Phase.RETRY.value})
Unit = Literal["s", "", "calls", "tokens", "µUSD"]


class Line(Struct, frozen=True, kw_only=True):
    """One limit and what became of it."""

    stage: str
    """``task`` or a stage's name."""
    what: str
    """``p50``, ``p95``, ``p99``, ``variance``, ``calls``, ``tokens`` or ``cost``."""
    unit: Unit
    limit: float
    value: float | None
    at_least: bool = False
    """Whether ``value`` is a lower bound: calls of the task that it is of do not report their part."""
    state: State
    over: int
    """Tasks above the limit."""
    of: int
    """Tasks of which the figure is known."""
    worst: tuple[tuple[TaskId, float], ...]
    """The tasks furthest above it, at most `WORST`."""
    note: str
    """What the reader must know; empty where there is nothing."""


def check(budget: Budget, rows: Sequence[TaskFacts]) -> tuple[Line, ...]:
    """Every limit of the budget against a set; percentile limits bound the set, the others each task."""
    lines = [*_stage("task", budget.task, [(row.task, row.e2e) for row in rows])]
    for name, limits in budget.stages.items():
        lines += _stage(name, limits, [(row.task, stage_seconds(row, name)) for row in rows])
    each: tuple[tuple[str, Unit, int | None, list[tuple[TaskId, Sum]]], ...] = (
        ("calls", "calls", budget.calls, [(row.task, Sum(row.calls, 1, 1)) for row in rows]),
        ("tokens", "tokens", budget.tokens, [(row.task, row.spent.tokens) for row in rows]),
        ("cost", "µUSD", budget.cost, [(row.task, row.spent.cost) for row in rows]),
    )
    for what, unit, limit, values in each:
        if limit is not None:
            lines.append(_each(what, unit, limit, values))
    return tuple(lines)


def stage_seconds(row: TaskFacts, name: str) -> float | None:
    """Path seconds of a stage in one task, 0 where it does not occur; unknown where times are.

    So it is of a part of model calls (queue, prefill, decode, retry) where some of them were not split into parts.
    A stage is a phase's name, or ``tool:NAME``, ``model:NAME``, ``agent:NAME``.
    """
    if row.e2e is None:
        return None
    kind, colon, rest = name.partition(":")
    if not colon:
        unsplit = kind in _WITHIN_A_CALL and bool(row.phases.get(Phase.MODEL))
        known = row.phases.get(Phase(kind), 0.0) if kind in set(Phase) else 0.0
        return None if unsplit else known
    match kind:
        case "tool":
            return row.tools[rest].on_path if rest in row.tools else 0.0
        case "model":
            return row.models[rest].on_path if rest in row.models else 0.0
        case "agent":
            return row.stages.get(rest, 0.0)
        case _:
            return 0.0


def unknown_stages(budget: Budget, rows: Sequence[TaskFacts]) -> tuple[str, ...]:
    """Stages of the budget that occur in no task: a word misspelt, or a tool that is gone."""
    return tuple(name for name in budget.stages if all(stage_seconds(row, name) == 0.0 for row in rows))


def _stage(name: str, limits: StageBudget, values: Sequence[tuple[TaskId, float | None]]) -> Iterator[Line]:
    known = sorted(((task, value) for task, value in values if value is not None), key=lambda pair: pair[1])
    ordered = [value for _, value in known]
    for percentile in PERCENTILES:
        limit = limits.limit(percentile)
        if limit is None:
            continue
        found = quantile(ordered, _SHARES[percentile]) if ordered else None
        broken = found is not None and found.value > limit
        yield Line(
            stage=name,
            what=percentile,
            unit="s",
            limit=limit,
            value=None if found is None else found.value,
            state="unknown" if found is None else "broken" if broken else "kept",
            over=sum(value > limit for value in ordered),
            of=len(known),
            worst=tuple([pair for pair in reversed(known[-WORST:]) if pair[1] > limit]) if broken else (),
            note="no task of the set tells how long it took" if found is None else _doubt(found, limit, broken=broken),
        )
    if limits.variance is not None:
        yield _variance(name, limits.variance, ordered)


def _doubt(found: Quantile, limit: float, *, broken: bool) -> str:
    if broken and (found.low is None or found.low <= limit):
        return f"{_prove_nothing(found.n)}: the true value may lie below the limit"
    if not broken and (found.high is None or found.high > limit):
        return f"{_prove_nothing(found.n)}: the true value may lie above the limit"
    return ""


def _prove_nothing(tasks: int) -> str:
    return "1 task does not prove it" if tasks == 1 else f"{tasks:,} tasks do not prove it"


def _variance(name: str, limit: float, ordered: Sequence[float]) -> Line:
    mean = sum(ordered) / len(ordered) if ordered else 0.0
    enough = len(ordered) >= _SURE and mean > 0
    spread = sqrt(sum((value - mean) ** 2 for value in ordered) / (len(ordered) - 1)) / mean if enough else None
    return Line(
        stage=name,
        what="variance",
        unit="",
        limit=limit,
        value=spread,
        state="unknown" if spread is None else "broken" if spread > limit else "kept",
        over=0,
        of=len(ordered),
        worst=(),
        note="" if enough else "two tasks or more of some length are needed",
    )


def _each(what: str, unit: Unit, limit: float, values: Sequence[tuple[TaskId, Sum]]) -> Line:
    known = sorted(
        ((task, float(one.least)) for task, one in values if one.least is not None),
        key=itemgetter(1),
    )
    over = [(task, least) for task, least in known if least > limit]
    untold, partial = len(values) - len(known), sum(one.partial for _, one in values)
    return Line(
        stage="task",
        what=what,
        unit=unit,
        limit=limit,
        value=known[-1][1] if known else None,
        at_least=bool(known) and bool(untold or partial),  # what is not told may be more than all that is
        state="broken" if over else "unknown" if untold or partial else "kept",
        over=len(over),
        of=len(known),
        worst=tuple(reversed(over[-WORST:])),
        note="; ".join(_untold(untold, partial, len(values))),
    )


def _untold(untold: int, partial: int, tasks: int) -> Iterator[str]:
    if untold:
        yield f"unknown for {untold:,} of {_tasks(tasks)}"
    if partial:
        yield f"only a lower bound for {partial:,} of {_tasks(tasks)}, some of whose calls do not report it"


def _tasks(number: int) -> str:
    return f"{number:,} task" if number == 1 else f"{number:,} tasks"


def suggest(rows: Sequence[TaskFacts]) -> Budget:
    """A budget that the set keeps, with a tenth to spare above what it shows for sure.

    Percentiles that the set is too small to bound are left out; so are stages that hardly count. Limits on tokens and
    cost rest on what is known of them; `unsure` says where that is not all.
    """
    timed = [row for row in rows if row.e2e is not None]
    whole = sum(row.e2e or 0.0 for row in timed)
    names = [phase.value for phase in Phase if any(phase in row.phases for row in timed)]
    names += [f"tool:{name}" for name in dict.fromkeys(name for row in timed for name in row.tools)]
    stages: dict[str, StageBudget] = {}
    for name in names:
        seconds = sorted(value for row in timed if (value := stage_seconds(row, name)) is not None)
        if seconds and whole and sum(seconds) / whole >= _WORTH and (limits := _limits(seconds)) != StageBudget():
            stages[name] = limits
    costs = [least for row in rows if (least := row.spent.cost.least) is not None]
    tokens = [least for row in rows if (least := row.spent.tokens.least) is not None]
    return Budget(
        task=_limits(sorted(row.e2e or 0.0 for row in timed)),
        calls=ceil(max((row.calls for row in rows), default=0) * _HEADROOM) or None,
        tokens=int(_rounded(max(tokens, default=0) * _HEADROOM)) or None,
        cost=MicroUsd(int(_rounded(max(costs, default=0) * _HEADROOM))) or None,
        stages=stages,
    )


def unsure(rows: Sequence[TaskFacts]) -> tuple[str, ...]:
    """What `suggest` left out, and what it could not know in full; plain sentences."""
    timed = sorted(row.e2e for row in rows if row.e2e is not None)
    unbound = [name for name in PERCENTILES if timed and not quantile(timed, _SHARES[name]).supported]
    found = [f"No limit on {', '.join(unbound)}: {_few(len(timed))} too few to bound it."] if unbound else []
    if rows and not timed:
        found.append("No limit on seconds: of no task it is known how long anything took.")
    sums = (("tokens", [row.spent.tokens for row in rows]), ("cost", [row.spent.cost for row in rows]))
    for what, told in sums:
        untold, partial = sum(one.least is None for one in told), sum(one.partial for one in told)
        if untold and untold == len(rows):
            found.append(f"No limit on {what}: unknown for all tasks.")
        elif untold or partial:
            found.append(f"The limit on {what} may be too low: {'; '.join(_untold(untold, partial, len(rows)))}.")
    return tuple(found)


def _few(timed: int) -> str:
    return "1 timed task is" if timed == 1 else f"{timed:,} timed tasks are"


def _limits(ordered: Sequence[float]) -> StageBudget:
    found = [quantile(ordered, _SHARES[name]) for name in PERCENTILES] if ordered else []
    upper = [_rounded(one.high * _HEADROOM) if one.high and one.supported else None for one in found]
    return StageBudget(p50=upper[0], p95=upper[1], p99=upper[2]) if upper else StageBudget()


def _rounded(value: float) -> float:
    """Up to two digits that count: 12.34 is 13."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 1)
    return round(ceil(round(value / unit, 9)) * unit, 9)
