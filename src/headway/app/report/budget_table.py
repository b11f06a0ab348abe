"""A budget on a terminal: each limit, what became of it, who broke it."""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import UNKNOWN, bound, count, dollars, plural, printable
from headway.app.report.grid import Grid
from headway.app.report.layout import Page, bullets, section
from headway.trace.budgets import Line, State, Unit

STYLES: Final[dict[State, str]] = {"kept": "green", "broken": "bold red", "unknown": "yellow"}


def render_budget(lines: Sequence[Line], absent: Sequence[str], title: str, notes: Sequence[str] = ()) -> Page:
    """The page for a budget.

    Args:
        lines: each limit and what became of it.
        absent: stages that occur in no task.
        title: what the budget is held against.
        notes: sentences to end with.
    """
    broken = sum(line.state == "broken" for line in lines)
    verdict = (
        f"{plural(broken, 'limit')} of {len(lines):,} broken."
        if broken
        else f"{plural(len(lines), 'limit')}, none broken."
    )
    doubtful = [f"{line.stage} {line.what}: {_most(line)}{line.note}." for line in lines if line.note]
    sentences = [*notes, *doubtful, *(f"{stage} occurs in no task: misspelt, or gone?" for stage in absent)]
    parts: list[RenderableType] = [Text(title, "dim"), Text(), Text(verdict, "bold"), Text()]
    parts += section("Budget", "seconds are on the critical path", budget_table(lines))
    if worst := list(_worst(lines)):
        parts += section("Who broke it", "see one with --task ID", *bullets(worst))
    if sentences:
        parts += section("To know", "", *bullets(sentences))
    return Page(*parts[:-1])


def budget_table(lines: Sequence[Line]) -> RenderableType:
    """A row per limit."""
    rows = [
        (
            printable(line.stage),
            line.what,
            figure(line.limit, line.unit),
            bound(figure(line.value, line.unit)) if line.at_least else figure(line.value, line.unit),
            _over(line),
            Text(line.state, STYLES[line.state]),
            f"{count(line.over)} of {count(line.of)}" if line.over else "",
        )
        for line in lines
    ]
    return Grid(("stage", "", "limit", "is", "by", "", "tasks above"), rows)


def figure(value: float | None, unit: Unit) -> str:
    """A limit or a value with its unit."""
    if value is None:
        return UNKNOWN
    match unit:
        case "s":
            return f"{value:,.3f} s" if value < 10 else f"{value:,.1f} s"  # noqa: PLR2004 - four figures are enough
        case "µUSD":
            return dollars(value)
        case "":
            return f"{value:.2f}"
        case "calls" | "tokens":
            return f"{value:,.0f}"


def _most(line: Line) -> str:
    """Whose value a lower bound is."""
    if not line.at_least:
        return ""
    return f"{figure(line.value, line.unit)} is the most that any of {plural(line.of, 'task')} tells; "


def _over(line: Line) -> str:
    if line.value is None or line.state != "broken":
        return ""
    more = f"+{figure(line.value - line.limit, line.unit)}"
    return f"{more} ({(line.value / line.limit - 1) * 100:.0f} %)" if line.limit else more


def _worst(lines: Sequence[Line]) -> Iterable[str]:
    for line in lines:
        if line.worst:
            tasks = ", ".join(f"{task} ({figure(value, line.unit)})" for task, value in line.worst)
            yield f"{line.stage} {line.what}: {tasks}"
