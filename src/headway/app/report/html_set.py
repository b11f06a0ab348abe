"""The account of a set of tasks as one HTML file: nothing is fetched, nothing runs, everything is escaped."""

from collections.abc import Sequence

from msgspec import Struct

from headway.app.report.figures import per_cent, plural
from headway.app.report.headline import headline
from headway.app.report.html_charts import distribution, histogram, scatter
from headway.app.report.html_page import page
from headway.app.report.html_waterfall import Fall, fall_of
from headway.app.report.legend import SIGNS
from headway.app.report.measured import MEASURED, OF_SETS, everything_of_sets
from headway.app.report.quality import left_out
from headway.app.report.replayed import moved, quantiles_of, spared, without
from headway.app.report.set_figures import (
    period,
    saves,
    set_decimals,
    set_headline,
    spread_rows,
    with_interval,
)
from headway.trace.account import TaskAccount
from headway.trace.phases import Phase
from headway.trace.set_study import SetReport
from headway.trace.sets import Row, SetAnatomy
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip

_ROWS = 60
"""Spans of one of the slowest tasks before the others are folded away."""
_PARTS = 25
"""Agents, tools or models in a table."""
_RECURRING = 8
"""Kinds of findings that are shown with their evidence."""


class Share(Struct, frozen=True, kw_only=True):
    """A row of a table of path seconds, with its two bars in per cent of the longest."""

    row: Row
    label: str
    phase: str
    """How its bars are drawn."""
    typical: float
    tail: float


class Slow(Struct, frozen=True, kw_only=True):
    """One of the slowest tasks, whole."""

    account: TaskAccount
    headline: str
    fall: Fall
    strip: str


def html_set(
    report: SetReport,
    slowest: Sequence[TaskAccount],
    e2e: Sequence[float],
    *,
    skipped: Sequence[Skip] = (),
    refused: Sequence[Refused] = (),
) -> str:
    """The report for a set.

    Args:
        report: the set, studied.
        slowest: the slowest of its tasks, each to be shown with its waterfall.
        e2e: seconds of every timed task.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
    """
    made, decimals = report.anatomy, set_decimals(report.anatomy)
    slow = [_slow(account, f"slow{i}") for i, account in enumerate(slowest, 1)]
    remarks = [f"{remark} ({plural(tasks, 'task')})" for remark, tasks in report.remarks]
    return page(
        "set.html.jinja",
        report=report,
        made=made,
        decimals=decimals,
        about=_about(made),
        headline=set_headline(made),
        spreads=spread_rows(made, decimals),
        with_interval=with_interval,
        phases=_shares(made.phases, phases=True),
        stages=_shares(made.stages[:_PARTS]) if len(made.stages) > 1 else (),
        most_parts=_PARTS,
        most=_RECURRING,
        histogram=histogram(made),
        scatter=scatter(made.scatter, made.prefill),
        distribution=distribution(e2e, () if made.e2e is None else made.e2e.quantiles, decimals),
        levers=[row for row in report.levers if saves(row)],
        moved=moved,
        quantiles_of=quantiles_of,
        spared=spared,
        without=without,
        slowest=slow,
        signs={phase: SIGNS[phase] for phase in SIGNS if any(phase in one.fall.signs for one in slow)},
        zip=zip,
        sentences=(*remarks, *left_out(skipped, refused)),
        measured={**MEASURED, **OF_SETS},
        everything=everything_of_sets(made),
    )


def _about(made: SetAnatomy) -> str:
    sources = ", ".join(f"{name}: {tasks:,}" for name, tasks in made.sources.items())
    said = [plural(made.tasks, "task"), sources]
    if (when := period(made)) is not None:
        said.append(when)
    if made.timed < made.tasks:
        said.append(f"{made.timed:,} of them with times")
    return " · ".join(said)


def _shares(rows: Sequence[Row], *, phases: bool = False) -> tuple[Share, ...]:
    longest = max((max(row.typical, row.tail) for row in rows), default=0.0)
    scale = 100 / longest if longest > 0 else 0.0
    return tuple(
        Share(
            row=row,
            label=SIGNS[Phase(row.name)].label if phases else row.name or "(no agent)",
            phase=row.name if phases else "part",
            typical=row.typical * scale,
            tail=row.tail * scale,
        )
        for row in rows
    )


def _slow(account: TaskAccount, key: str) -> Slow:
    anatomy = account.anatomy
    shares = ", ".join(
        f"{SIGNS[phase].label} {per_cent(spent / anatomy.e2e)}"
        for phase, spent in sorted(anatomy.phases.items(), key=lambda item: -item[1])
        if anatomy.e2e > 0
    )
    return Slow(account=account, headline=headline(account), fall=fall_of(anatomy, _ROWS, key), strip=shares)
