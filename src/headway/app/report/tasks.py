"""The list of tasks on a terminal."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import count, decimals_for, moment, plural, printable, seconds, short_id
from headway.trace.store import TaskRow


def render_tasks(rows: Sequence[TaskRow]) -> RenderableType:
    """A line per task: enough of its id to name it, when, how long, calls, tokens, whether it failed, models."""
    if not rows:
        return Text("No task matches.")
    ids = [row.task for row in rows]
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="ellipsis", no_wrap=True, max_width=34)
    table.add_column(no_wrap=True, min_width=19)
    for title in ("took", "calls", "tokens"):
        widest = max(len(title), *(len(cells[title]) for cells in map(_numbers, rows)))
        table.add_column(no_wrap=True, justify="right", min_width=widest)
    table.add_column(no_wrap=True, min_width=8)
    table.add_column(overflow="ellipsis", no_wrap=True)
    table.add_row(*(Text(title, "dim") for title in ("task", "when", "took", "calls", "tokens", "status", "models")))
    for row in rows:
        status = Text(plural(row.errors, "error"), "red") if row.errors else Text("ok", "green")
        task, models = printable(short_id(row.task, ids)), printable(", ".join(row.models))
        table.add_row(Text(task, "bold"), moment(row.started_at), *_numbers(row).values(), status, Text(models, "dim"))
    return table


def _numbers(row: TaskRow) -> dict[str, str]:
    took = None if row.ended_at is None else row.ended_at - row.started_at
    return {
        "took": seconds(took, decimals_for(took or 0.0)),
        "calls": count(row.calls),
        "tokens": count(row.tokens),
    }
