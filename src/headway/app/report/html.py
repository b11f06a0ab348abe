"""The account of a task as one HTML file: nothing is fetched, nothing runs, everything is escaped."""

from collections.abc import Sequence

from headway.app.report.figures import fixed
from headway.app.report.formula import COLUMNS, Formula, formula
from headway.app.report.headline import headline
from headway.app.report.html_page import page
from headway.app.report.html_waterfall import Piece, fall_of
from headway.app.report.legend import SIGNS
from headway.app.report.measured import MEASURED, everything, of_tpot
from headway.app.report.quality import left_out, unknowns
from headway.app.report.replayed import moved, spared, without
from headway.app.report.worth import beside_seconds, worth_showing
from headway.trace.account import TaskAccount
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.whatif import Outcome

_ROWS = 150
"""Spans shown before the others are folded away; it bounds the file at about half a megabyte."""
_TERMS = 60


def html_task(
    account: TaskAccount,
    outcome: Outcome | None = None,
    skipped: Sequence[Skip] = (),
    refused: Sequence[Refused] = (),
    note: str | None = None,
) -> str:
    """The report for one task.

    Args:
        account: the task.
        outcome: it with the changes that were asked for.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
        note: what is to be known before all else.
    """
    anatomy, table = account.anatomy, formula(account.anatomy, _TERMS)
    fall = fall_of(anatomy, _ROWS, "task")
    return page(
        "task.html.jinja",
        anatomy=anatomy,
        account=account,
        timed=account.verdict.timed,
        headline=headline(account),
        sentences=(*unknowns(account), *left_out(skipped, refused)),
        fall=fall,
        signs=fall.signs,
        strip=_strip(table),
        table=table,
        shown=worth_showing(account.levers),
        beside_seconds=beside_seconds,
        outcome=outcome,
        note=note,
        moved=moved,
        spared=spared,
        without=without,
        measured=MEASURED,
        of_tpot=of_tpot,
        how={column: SIGNS[next(iter(phases))].measured for column, phases in COLUMNS.items()},
        everything=everything(anatomy),
    )


def _strip(table: Formula) -> list[Piece]:
    """The critical path's phases, one after another, largest first."""
    strip: list[Piece] = []
    x = 0.0
    for phase, units in table.phases.items():
        width = units * 100 / table.e2e
        title = f"{SIGNS[phase].label} {fixed(units, table.decimals)} s: {SIGNS[phase].measured}"
        strip.append(Piece(phase=phase, x=x, width=width, title=title))
        x += width
    return strip
