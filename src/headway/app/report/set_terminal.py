"""The account of a set of tasks on a terminal."""

from collections.abc import Iterable, Sequence

from msgspec import structs
from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import (
    UNKNOWN,
    amount,
    at_least,
    bare,
    cache_tellers,
    count,
    counted,
    dollars,
    paid,
    per_cent,
    plural,
    printable,
    seconds,
    short_id,
)
from headway.app.report.findings import details, findings_list
from headway.app.report.grid import Grid
from headway.app.report.layout import Page, bullets, definitions, section
from headway.app.report.legend import SIGNS
from headway.app.report.measured import everything_of_sets
from headway.app.report.quality import aspects_table, left_out
from headway.app.report.replayed import changed_lines
from headway.app.report.set_figures import binned, period, saves, set_decimals, set_headline, spread_rows
from headway.core.spent import Spent
from headway.trace.phases import Phase
from headway.trace.set_study import SetReport
from headway.trace.sets import Row, SetAnatomy
from headway.trace.sources.intake import Refused
from headway.trace.sources.skips import Skip
from headway.trace.stats import Line, Quantile

_ROWS = 10
_BAR = 40
_RECURRING = 6


def render_set(
    report: SetReport, skipped: Sequence[Skip] = (), refused: Sequence[Refused] = (), *, why: bool = False
) -> Page:
    """The page for a set.

    Args:
        report: the set, studied.
        skipped: what inside its documents could not be used.
        refused: documents in no known format.
        why: end with how each number was measured.
    """
    made = report.anatomy
    decimals = set_decimals(made)
    parts: list[RenderableType] = [_title(made), Text(), Text(set_headline(made), style="bold"), Text()]
    parts += section("Spread", "in brackets: 95 % interval; its absence: too few tasks to say", spreads(made, decimals))
    if made.phases:
        parts += section(
            "Where the time goes", "seconds on the critical path of a task", _rows(_labelled(made.phases), decimals)
        )
    if len(made.stages) > 1:
        parts += section("By agent", "", _rows(made.stages, decimals))
    if made.tools:
        parts += section("By tool", "", _tools(made, decimals))
    if made.models:
        parts += section("By model", "", _models(made))
    parts += section("Iterations", "tasks by N, the model calls on the loop", *_histogram(made))
    parts += section("Findings over the set", "", *findings_list(report.findings, decimals)) if report.findings else []
    parts += section("Findings in its tasks", _sampled(report), *_recurring(report, decimals))
    if report.levers:
        parts += section(
            "Levers",
            f"E2E of {plural(report.levers[0].of, 'task')}, each replayed with the change",
            *_levers(report, decimals),
        )
    if report.changed is not None:
        aside = f"{plural(report.changed.of, 'task')}, each replayed with the changes"
        parts += section("What if", aside, *changed_lines(report.changed, decimals))
    if report.slowest:
        parts += section("Slowest", "see one with --task ID", _slowest(report, decimals))
    parts += section("How good the record is", "", aspects_table(report.aspects))
    notes = [f"{remark} ({plural(tasks, 'task')})" for remark, tasks in report.remarks]
    if sentences := [*notes, *left_out(skipped, refused)]:
        parts += section("To know", "", *bullets(sentences))
    if why:
        parts += section("How it was measured", "", definitions(everything_of_sets(made)))
    return Page(*parts[:-1])


def spreads(made: SetAnatomy, decimals: int) -> RenderableType:
    """E2E, task TTFT, N, tokens and money: mean and quantiles."""
    cells = [
        (row.name, row.known, UNKNOWN, "", "", "")
        if row.spread is None
        else (
            row.name,
            row.known,
            row.mean,
            *(row.at(q).replace(" [", "\n[") for q in row.spread.quantiles),
        )
        for row in spread_rows(made, decimals)
    ]
    return Grid(("", "known", "mean", "p50", "p95", "p99"), cells)


def _title(made: SetAnatomy) -> Text:
    sources = ", ".join(f"{name}: {count(tasks)}" for name, tasks in made.sources.items())
    line = f"{plural(made.tasks, 'task')}   {sources}"
    if (when := period(made)) is not None:
        line += f"   {when}"
    if made.failed:
        line += f"   {plural(made.failed, 'task')} failed"
    return Text(printable(line), style="dim")


def _labelled(rows: Iterable[Row]) -> list[Row]:
    return [structs.replace(row, name=SIGNS[Phase(row.name)].label) for row in rows]


def _rows(rows: Sequence[Row], decimals: int) -> RenderableType:
    cells = [(row.name or "(no agent)", *_path(row, decimals)) for row in rows[:_ROWS]]
    return Grid(("", "share", "tasks", "mean", "p50", "p95", "typical", "tail"), cells)


def _path(row: Row | None, decimals: int) -> tuple[str, ...]:
    if row is None:
        return ("", "", "", "", "", "", "")
    p50, p95 = row.on_path.quantiles[:2]
    figures = (row.on_path.mean, p50.value, p95.value, row.typical, row.tail)
    return (per_cent(row.share), count(row.tasks), *(bare(value, decimals) for value in figures))


def _tools(made: SetAnatomy, decimals: int) -> RenderableType:
    cells = [
        (
            printable(tool.name),
            count(tool.uses),
            at_least(tool.failed.exact, tool.failed.least, amount, short=True),
            at_least(tool.again.exact, tool.again.least, amount, short=True),
            UNKNOWN if tool.seconds is None else bare(tool.seconds, decimals),
            *_path(tool.on_path, decimals)[:5],
        )
        for tool in made.tools[:_ROWS]
    ]
    return Grid(("", "uses", "failed", "again", "s/use", "share", "tasks", "mean", "p50", "p95"), cells)


def _models(made: SetAnatomy) -> RenderableType:
    cells = [
        (
            printable(model.name),
            count(model.calls),
            count(model.failed),
            "" if model.on_path is None else per_cent(model.on_path.share),
            *_spent(model.spent),
        )
        for model in made.models[:_ROWS]
    ]
    if len(made.models) > 1:
        cells.append(("all together", count(sum(model.calls for model in made.models)), "", "", *_spent(made.spent)))
    return Grid(("", "calls", "failed", "share of path", "in", "out", "cost"), cells)


def _spent(spent: Spent) -> tuple[str, str, str]:
    return (
        counted(spent.input_tokens, short=True),
        counted(spent.output_tokens, short=True),
        paid(spent.cost, short=True),
    )


def _histogram(made: SetAnatomy) -> Iterable[RenderableType]:
    most = max((tasks for _, tasks in made.histogram), default=0)
    bins = binned(made.histogram)
    most = max((tasks for _, tasks in bins), default=0)
    rows = [
        (name, count(tasks), Text("█" * max(round(tasks / most * _BAR), 1) if tasks else "", "cyan"))
        for name, tasks in bins
    ]
    yield Grid(("N", "tasks", ""), rows, words=True) if rows else Text("No task has a model call.")
    if made.prefill is not None:
        yield Text(_reading(made.prefill))
    if made.spent.cached_share is not None:
        whose = cache_tellers(made.spent) or "the input tokens"
        yield Text(f"Of {whose}, {per_cent(made.spent.cached_share)} came from a cache.")


def _reading(line: Line) -> str:
    if line.slope_low <= 0:
        return f"Reading: over {plural(line.n, 'call')}, TTFT shows no relation to the tokens that are not cached."
    return (
        f"Reading: TTFT = {line.intercept:.3f} s + {line.slope * 1000:.3f} s per 1,000 tokens that are not cached"
        f" [{line.slope_low * 1000:.3f}, {line.slope_high * 1000:.3f}], over {plural(line.n, 'call')}."
    )


def _sampled(report: SetReport) -> str:
    if report.sampled == report.anatomy.tasks:
        return ""
    return f"in a sample of {plural(report.sampled, 'task')}"


def _recurring(report: SetReport, decimals: int) -> Iterable[RenderableType]:
    if not report.recurring:
        yield Text("None of the known failure modes shows in these tasks.")
        return
    rows = [
        (
            row.name,
            f"{count(row.tasks)} of {count(row.of)}",
            f"{row.seconds:,.{decimals}f}" if row.seconds else "",
            per_cent(row.share) if row.seconds else "",
            paid(row.cost, short=True) if row.cost.total else "",
        )
        for row in report.recurring
    ]
    yield Grid(("", "tasks", "path s", "of all", "cost"), rows)
    for row in report.recurring[:_RECURRING]:
        yield Text()
        yield Text.assemble((printable(row.worst.title), "bold"), (f"  the dearest, in task {row.worst_task}", "dim"))
        yield details(row.worst)


def _levers(report: SetReport, decimals: int) -> Iterable[RenderableType]:
    shown = [row for row in report.levers if saves(row)][:_ROWS]
    cells = [
        (
            row.lever.key.replace("-", " "),
            f"{count(row.tasks)}",
            *(_moved(before, after, decimals) for before, after in zip(row.before, row.after, strict=True)),
            at_least(row.tokens, row.tokens_least, amount, short=True),
            at_least(row.cost, row.cost_least, dollars, short=True),
        )
        for row in shown
    ]
    if not cells:
        yield Text("None of the known changes would shorten these tasks noticeably.")
        return
    yield Grid(("", "tasks", "saves at p50", "saves at p95", "tokens/task", "cost/task"), cells)
    for row in shown[:3]:
        yield Text()
        yield Text(row.lever.key.replace("-", " "), style="bold")
        yield from bullets([row.lever.how, f"Assumes: {row.lever.assumes}", f"Trade-off: {row.lever.tradeoff}"])


def _moved(before: Quantile, after: Quantile, decimals: int) -> str:
    saved = before.value - after.value
    return f"{seconds(saved, decimals)} ({per_cent(saved / before.value if before.value else 0.0)})"


def _slowest(report: SetReport, decimals: int) -> RenderableType:
    cells = [
        (
            printable(short_id(row.task, report.namesakes)),
            seconds(row.e2e, decimals),
            count(row.n),
            counted(row.spent.input_tokens, short=True),
            paid(row.spent.cost, short=True),
            printable(row.title or ""),
        )
        for row in report.slowest
    ]
    return Grid(("", "E2E", "N", "input tokens", "cost", "asked"), cells, words=True)
