"""Findings on a terminal: what is wrong, what shows it, how to be sure, what to do."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import at_least, dollars, plural, printable, seconds
from headway.trace.findings import Finding

MOST = 6
"""Findings that a page shows; the rest are counted."""


def findings_list(found: Sequence[Finding], decimals: int) -> Iterable[RenderableType]:
    """The dearest findings, one under the other."""
    if not found:
        yield Text("None of the known failure modes shows in this record.")
    for rank, finding in enumerate(found[:MOST], 1):
        head = Text.assemble(
            (printable(finding.title), "bold"), (f"  {finding.confidence}{_price(finding, decimals)}", "dim")
        )
        grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_row(str(rank), Group(head, details(finding)))
        yield grid
    if len(found) > MOST:
        yield Text(f"{plural(len(found) - MOST, 'more finding')}, each of less weight; --json lists all.", style="dim")


def details(finding: Finding) -> RenderableType:
    """What shows it, how to be sure, what to do."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    rows = [("shows in" if i == 0 else "", sentence) for i, sentence in enumerate(finding.evidence)]
    for name, text in (*rows, ("check", finding.check), ("do", finding.remedy)):
        grid.add_row(name, Text(printable(text)))
    return grid


def _price(finding: Finding, decimals: int) -> str:
    parts = [] if not finding.seconds else [seconds(finding.seconds, decimals)]
    if finding.cost or finding.cost_least:
        parts.append(at_least(finding.cost, finding.cost_least, dollars))
    return "".join(f", {part}" for part in parts)
