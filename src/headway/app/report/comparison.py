"""Two sets of tasks against each other, on a terminal."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from headway.app.report.figures import UNKNOWN, bound, count, dollars, plural, printable
from headway.app.report.grid import Grid
from headway.app.report.layout import Page, bullets, section
from headway.app.report.legend import SIGNS
from headway.trace.compare import Comparison, Moved
from headway.trace.phases import Phase
from headway.trace.stats import Difference

_NOTHING: Final = "No difference shown: what differs between the two sets is no more than chance would make."
_HOW: Final = (
    "The intervals of E2E hold together at 95 %, and so do all others together: of two equal sets, one in twenty is"
    " said to differ. They take tasks to be independent of each other."
)


def render_comparison(found: Comparison, names: tuple[str, str]) -> Page:
    """The page for two sets.

    Args:
        found: what moved.
        names: what the sets are called.
    """
    title = f"{names[0]}: {plural(found.tasks[0], 'task')}   against   {names[1]}: {plural(found.tasks[1], 'task')}"
    if any(found.failed):
        title += f"   failed: {count(found.failed[0])} and {count(found.failed[1])}"
    parts: list[RenderableType] = [Text(printable(title), "dim"), Text(), Text(sentence(found), "bold"), Text()]
    parts += section("Whole tasks", "after - before; in brackets its interval", _table([found.e2e, *found.figures]))
    if found.phases:
        named = {phase.value: SIGNS[phase].label for phase in Phase}
        parts += section("By phase", "seconds on the critical path of a task", _table(found.phases, named))
    if found.tools:
        parts += section("By tool", "likewise; those that moved most", _table(found.tools))
    parts += section("To know", "", *bullets(_notes(found)))
    return Page(*parts[:-1])


def sentence(found: Comparison) -> str:
    """Whether anything moved, and what moved most."""
    if not found.shown:
        return _NOTHING
    if not found.e2e.shown:
        moved = [one.name for one in (*found.figures, *found.phases, *found.tools) if one.shown]
        return f"End to end no difference is shown; but these moved: {', '.join(moved)}."
    at = next(one for one in found.e2e.at if one.shown)
    grown = "slower" if at.delta > 0 else "faster"
    moved = next((phase for phase in found.phases if phase.shown), None)
    why = "" if moved is None else f"; most of it is {SIGNS[Phase(moved.name)].noun}"
    return (
        f"The second set is {grown}: {abs(at.delta):,.3f} s at {_percent(at.q)} [{at.low:+,.3f}, {at.high:+,.3f}]{why}."
    )


def _notes(found: Comparison) -> list[str]:
    return [*found.warnings, _HOW]


def _table(rows: Sequence[Moved], named: dict[str, str] | None = None) -> RenderableType:
    cells = [
        (
            printable((named or {}).get(row.name, row.name)) + (f", {row.unit}" if row.unit == "s" else ""),
            *_means(row),
            *(_moved(at, row.unit) for at in row.at),
            *([""] * (2 - len(row.at))),
        )
        for row in rows
    ]
    return Grid(("", "mean before", "after", "p50", "p95"), cells)


def _means(row: Moved) -> tuple[str, str]:
    before, after = row.mean or (None, None)
    if row.mean is None and row.least == (None, None):
        return "unknown", ""
    return _mean(before, row.least[0], row.unit), _mean(after, row.least[1], row.unit)


def _mean(exact: float | None, least: float | None, unit: str) -> str:
    """The mean, or where some tasks tell only a part what it comes to at least."""
    if least is not None:
        return bound(_figure(least, unit))
    return UNKNOWN if exact is None else _figure(exact, unit)


def _moved(at: Difference, unit: str) -> Text:
    """The difference, and under it, or the table would be too wide, its interval or why there is none."""
    interval = f"[{_signed(at.low, unit)}, {_signed(at.high, unit)}]"
    if not at.supported:
        why = f"too few tasks for {_percent(at.q)}"
        return Text.assemble(("not shown  ", "dim"), f"{_signed(at.delta, unit)}\n", (why, "dim"))
    if not at.shown:
        return Text.assemble(("not shown  ", "dim"), f"{_signed(at.delta, unit)}\n", (interval, "dim"))
    return Text.assemble(f"{_signed(at.delta, unit)}\n", (interval, "bold red" if at.delta > 0 else "bold green"))


def _figure(value: float, unit: str) -> str:
    match unit:
        case "s":
            return f"{value:,.3f}"
        case "µUSD":
            return dollars(value)
        case _:
            return f"{value:,.1f}"


def _signed(value: float, unit: str) -> str:
    return f"{'-' if value < 0 else '+'}{_figure(abs(value), unit)}" if value else _figure(0.0, unit)


def _percent(q: float) -> str:
    return f"p{q * 100:.0f}"
