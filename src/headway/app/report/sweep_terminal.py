"""A sweep over tasks at once, on a terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import plural
from headway.bench.figures import Figures
from headway.bench.sweep import ENOUGH, Level, Swept


class SweepTable:
    """A line per level, then what they say together.

    Args:
        swept: what to show.
        slos: as they were written.
    """

    def __init__(self, swept: Swept, slos: Sequence[str]) -> None:
        self._swept = swept
        self._slos = slos

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table.grid(padding=(0, 2, 0, 0))
        titles = ("at once", "tasks", "failed", "tasks/s", "E2E p50", "p95", "task TTFT p50", "p95", "kept SLOs", "")
        for title in titles:
            table.add_column(justify="right" if title else "left")
        table.add_row(*titles, style="dim")
        for level in self._swept.levels:
            table.add_row(*_row(level))
        yield table
        for line in _said(self._swept, self._slos):
            yield Text(line)


def told_level(level: Level) -> str:
    """A line for whoever waits for the end."""
    e2e = _percentiles(level.figures, "E2E")
    return f"{level.tasks} at once: {level.figures.tasks_per_second:.3g} tasks/s, E2E p50 {e2e[0]}, p95 {e2e[1]}"


def _row(level: Level) -> list[str]:
    figures = level.figures
    share = figures.attained
    return [
        f"{level.tasks}",
        f"{figures.tasks}",
        f"{figures.failed}",
        f"{figures.tasks_per_second:.3g}",
        *_percentiles(figures, "E2E"),
        *_percentiles(figures, "task TTFT"),
        "" if share is None else f"{share.good / share.of:.0%}",
        "not valid" if level.troubles else "",
    ]


def _percentiles(figures: Figures, name: str) -> tuple[str, str]:
    for spread in figures.spreads:
        if spread.name == name and spread.quantiles:
            return f"{spread.quantiles[0].value:.2f} s", f"{spread.quantiles[2].value:.2f} s"
    return "unknown", "unknown"


def _said(swept: Swept, slos: Sequence[str]) -> Iterator[str]:
    for level in swept.levels:
        for trouble in level.troubles:
            yield f"{level.tasks} at once is NOT VALID and not used below: {trouble}"
    if swept.knee is None:
        yield "Fewer than four levels can be used: too few for the shape of the curve."
    else:
        yield f"Throughput: {swept.knee}."
    if not slos:
        return
    asked = ", ".join(slos)
    if swept.most is None:
        yield f"No level kept {asked} for {ENOUGH:.0%} of its tasks."
    elif swept.beyond is None:
        yield f"{plural(swept.most, 'task')} at once, the most that was tried, kept {asked}: more may be held."
    else:
        border = "the very next level" if swept.beyond == swept.most + 1 else f"{swept.beyond}"
        yield f"{plural(swept.most, 'task')} at once kept {asked} for {ENOUGH:.0%} of the tasks; {border} did not."
