"""The list of tasks on a terminal."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import count, counted, decimals_for, moment, plural, printable, seconds, short_id
from headway.core.task import TaskId
from headway.trace.task_row import TaskRow

_TITLES = ("task", "when", "took", "calls", "tokens", "status", "models")
_NUMBERS = {"took", "calls", "tokens"}
_LONGEST_ID = 32
_ID = 16
_NAME = 24
"""What long ids and long models leave each other at least, while there is room."""
_MODELS = 8
"""Columns below which the models are left out."""


class TaskTable:
    """A line per task: enough of its id to name it, when, how long, calls, tokens, whether it failed, models.

    Numbers are never cut: the models give way first, then the ids.

    Args:
        rows: the tasks to list.
        others: tasks that are not listed and that an id must not be taken for.
    """

    def __init__(self, rows: Sequence[TaskRow], others: Sequence[TaskId] = ()) -> None:
        self._rows = rows
        self._others = others

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self._rows:
            yield Text("No task matches.")
            return
        ids = [*(row.task for row in self._rows), *self._others]
        lines = [_TITLES, *(_cells(row, ids) for row in self._rows)]
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        fixed = sum(widths[1:-1]) + 2 * (len(widths) - 1)
        room = options.max_width - fixed
        models = min(widths[-1], max(room - _LONGEST_ID, _NAME))
        name = max(min(widths[0], _ID), min(widths[0], room - models))
        shown = len(_TITLES) if room - name >= _MODELS else len(_TITLES) - 1
        widths[0] = name if shown == len(_TITLES) else min(widths[0], _LONGEST_ID, max(room, 1))
        widths[-1] = room - widths[0]
        table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        for title, width in zip(_TITLES[:shown], widths[:shown], strict=True):
            justify = "right" if title in _NUMBERS else "left"
            table.add_column(justify=justify, no_wrap=True, overflow="ellipsis", min_width=width, max_width=width)
        table.add_row(*_TITLES[:shown], style="dim")
        for row, line in zip(self._rows, lines[1:], strict=True):
            styles = (
                "bold",
                "",
                "",
                "",
                "",
                "red" if row.failed or row.refused else "yellow" if row.errors else "green",
                "dim",
            )
            texts = [Text(cell, style) for cell, style in zip(line, styles, strict=True)]
            table.add_row(*texts[:shown])
        yield table


def _cells(row: TaskRow, ids: Sequence[TaskId]) -> tuple[str, ...]:
    took = None if row.ended_at is None else row.ended_at - row.started_at
    return (
        printable(short_id(row.task, ids)),
        moment(row.started_at),
        seconds(took, decimals_for(took or 0.0)),
        count(row.calls),
        counted(row.tokens, short=True),
        status(row),
        printable(", ".join(row.models)),
    )


def status(row: TaskRow) -> str:
    """How a task ended: a failure after which it was answered all the same is no failed task."""
    if row.refused:
        return "refused"
    if not row.errors:
        return "ok"
    errors = plural(row.errors, "error")
    return errors if row.failed else f"ok after {errors}"
