"""A comparison and a budget for machines: JSON in stable schemas, as in `document`."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from headway.trace.budgets import Line
from headway.trace.compare import Comparison, Moved


class At(Struct, frozen=True, kw_only=True):
    """A quantile in both sets; ``shown`` says whether they differ by more than chance."""

    q: float
    before: float
    after: float
    delta: float
    low: float
    high: float
    supported: bool
    """Whether both sets have tasks enough; if not, ``low`` and ``high`` prove nothing."""
    shown: bool


class Figure(Struct, frozen=True, kw_only=True):
    """One figure in both sets."""

    name: str
    unit: str
    known: tuple[int, int]
    mean: tuple[float, float] | None
    at: tuple[At, ...]
    partial: tuple[int, int]
    """Tasks some of whose calls do not report it: left out of ``known``, ``mean`` and ``at``."""
    mean_at_least: tuple[float | None, float | None]
    """Where there are such tasks: the mean of all that tell anything, as a lower bound."""


class ComparisonAccount(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway compare --json``."""

    schema: str = "headway.compare/1"
    sets: tuple[str, str]
    tasks: tuple[int, int]
    failed: tuple[int, int]
    shown: bool
    e2e: Figure
    figures: tuple[Figure, ...]
    phases: tuple[Figure, ...]
    tools: tuple[Figure, ...]
    warnings: tuple[str, ...]


class BudgetAccount(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway explain --budget --json``."""

    schema: str = "headway.budget/1"
    broken: int
    lines: tuple[Line, ...]
    absent: tuple[str, ...]
    """Stages of the budget that occur in no task."""


def compare_json(found: Comparison, names: tuple[str, str]) -> str:
    """A `ComparisonAccount` as JSON on one line."""
    account = ComparisonAccount(
        sets=names,
        tasks=found.tasks,
        failed=found.failed,
        shown=found.shown,
        e2e=_figure(found.e2e),
        figures=tuple(map(_figure, found.figures)),
        phases=tuple(map(_figure, found.phases)),
        tools=tuple(map(_figure, found.tools)),
        warnings=found.warnings,
    )
    return msgspec.json.encode(account).decode()


def budget_json(lines: Sequence[Line], absent: Sequence[str]) -> str:
    """A `BudgetAccount` as JSON on one line."""
    broken = sum(line.state == "broken" for line in lines)
    return msgspec.json.encode(BudgetAccount(broken=broken, lines=tuple(lines), absent=tuple(absent))).decode()


def _figure(moved: Moved) -> Figure:
    at = tuple(
        At(
            q=one.q,
            before=one.before.value,
            after=one.after.value,
            delta=one.delta,
            low=one.low,
            high=one.high,
            supported=one.supported,
            shown=one.shown,
        )
        for one in moved.at
    )
    return Figure(
        name=moved.name,
        unit=moved.unit,
        known=moved.known,
        mean=moved.mean,
        at=at,
        partial=moved.partial,
        mean_at_least=moved.least,
    )
