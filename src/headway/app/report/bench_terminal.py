"""What a load came to, on a terminal."""

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import count, plural
from headway.bench.figures import Figures, Spread
from headway.bench.report import Report

_MILLI = 10.0
"""Seconds below which a figure's column is given in milliseconds."""
_UNKNOWN = "unknown"


class BenchTable:
    """The figures of one report, what they were made under, and whether they can be used.

    Args:
        report: what to show.
        why: with the formula of each figure.
    """

    def __init__(self, report: Report, *, why: bool = False) -> None:
        self._report = report
        self._why = why

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        report = self._report
        for trouble in report.troubles:
            yield Text(f"NOT VALID: {trouble}", style="bold red")
        if report.interrupted:
            yield Text("Stopped by hand: what had ended by then is shown.", style="yellow")
        for line in _said(report):
            yield Text(line)
        yield Text()
        yield self._spreads(report.figures)
        yield Text()
        for line in _totals(report):
            yield Text(line)

    def _spreads(self, figures: Figures) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        titles = ("", "p50", "p90", "p95", "p99", "with failures: p50", "p95", "n")
        for title in titles:
            table.add_column(justify="right" if title else "left")
        table.add_row(*titles, style="dim")
        for spread in figures.spreads:
            table.add_row(*_row(spread))
            if self._why:
                table.add_row(Text(f"  {spread.how}", style="dim"))
        return table


def _row(spread: Spread) -> list[str]:
    if not spread.quantiles:
        return [spread.name, _UNKNOWN]
    values = [one.value for one in spread.quantiles]
    unsure = ["" if one.supported else "?" for one in spread.quantiles]
    in_ms = max(values) < _MILLI
    shown = [f"{_time(value, in_ms=in_ms)}{mark}" for value, mark in zip(values, unsure, strict=True)]
    failures = [_never(value, in_ms=in_ms) for value in (spread.with_failures or (None,) * 4)]
    both = [failures[0], failures[2]] if spread.with_failures else ["", ""]
    return [f"{spread.name}, {'ms' if in_ms else 's'}", *shown, *both, f"{spread.quantiles[0].n:,}"]


def _time(seconds: float, *, in_ms: bool) -> str:
    return f"{seconds * 1e3:,.1f}" if in_ms else f"{seconds:,.2f}"


def _never(seconds: float | None, *, in_ms: bool) -> str:
    return "never" if seconds is None else _time(seconds, in_ms=in_ms)


def _said(report: Report) -> Iterator[str]:
    held = report.statement
    yield f"{held.model} at {held.url}, {'streamed' if held.stream else 'not streamed'}"
    yield f"{held.workload}"
    warm_up = f", the first {plural(held.warm_up, 'session')} left out as warm-up" if held.warm_up else ""
    yield f"arrivals {held.arrivals}, for {held.stop or 'all'}{warm_up}; texts {held.texts}"
    yield f"headway {held.headway}, Python {held.python}, {held.system}, {held.machine}"


def _totals(report: Report) -> Iterator[str]:
    figures = report.figures
    ended = f"{plural(figures.tasks, 'task')} in {figures.seconds:.1f} s: {figures.tasks_per_second:.3g} tasks/s"
    n = "" if figures.n is None else f", N {figures.n:.1f}"
    yield f"{ended}, {figures.calls_per_second:.3g} calls/s{n}"
    errors = ", ".join(f"{word} {number}" for word, number in figures.errors.items())
    yield f"failed: {plural(figures.failed, 'task')}{f' (calls: {errors})' if errors else ''}" + (
        f"; stopped: {plural(figures.unfinished, 'task')}" if figures.unfinished else ""
    )
    client = report.calibration
    yield (
        f"client: {report.cpu_share:.0%} of a core; before the load it read {client.p50 * 1e3:.2f} ms (p50) and"
        f" {client.p99 * 1e3:.2f} ms (p99) after a known engine had sent"
    )
    output = figures.output_per_second
    rate = "" if output is None else f", {output:,.0f} output tokens/s"
    tokens = [
        f"{count(value)} {name}" if value is not None else f"{name} unknown"
        for name, value in (
            ("in", figures.input_tokens),
            ("out", figures.output_tokens),
            ("cached", figures.cached_tokens),
        )
    ]
    yield f"tokens: {', '.join(tokens)}, as told by {figures.tokens_told_by:,} of {plural(figures.calls, 'call')}{rate}"
    if figures.attained is not None and figures.goodput is not None:
        share = figures.attained
        yield (
            f"goodput {figures.goodput:.3g} tasks/s under {', '.join(report.slos)}: {share.good} of {share.of},"
            f" {share.good / share.of:.1%} [{share.low:.1%}, {share.high:.1%}]"
        )
    if any(spread.quantiles and not all(one.supported for one in spread.quantiles) for spread in figures.spreads):
        yield "? too few for a 95 % interval on both sides: 6 are needed for p50, 72 for p95, 368 for p99"


def side_by_side(before: Report, after: Report) -> Table:
    """The percentiles of two reports, and what they differ by."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    for _ in range(6):
        table.add_column(justify="right")
    table.add_row("", "p50 before", "after", "", "p95 before", "after", "", style="dim")
    for one, other in zip(before.figures.spreads, after.figures.spreads, strict=True):
        cells = [one.name]
        for at in (0, 2):
            if not one.quantiles or not other.quantiles:
                cells += [_UNKNOWN, _UNKNOWN, ""]
                continue
            first, second = one.quantiles[at].value, other.quantiles[at].value
            change = f"{second / first - 1:+.0%}" if first else ""
            cells += [f"{first:.3f} s", f"{second:.3f} s", change]
        table.add_row(*cells)
    return table
