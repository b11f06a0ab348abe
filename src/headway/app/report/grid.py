"""Tables of numbers on a terminal: names give way to numbers, which are never cut."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_LEAST_NAME = 12


class Grid:
    """Rows under a dim head; the first column is a name, all others are numbers, and the last may be words.

    Columns of numbers that do not fit follow below, beside the names once more: none is left out. Names that do not fit
    are cut, but beside words, which take as many lines anyhow, they go on in the next line.

    Args:
        head: titles of the columns.
        rows: cells, as many as titles; a cell may bring its own style.
        words: whether the last column is text that may wrap.
    """

    def __init__(self, head: Sequence[str], rows: Sequence[Sequence[str | Text]], *, words: bool = False) -> None:
        self._head = head
        self._rows = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
        self._words = words

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rest = list(range(1, len(self._head) - self._words))
        widths = [max(len(self._head[i]), *(_width(row[i]) for row in self._rows)) for i in range(len(self._head))]
        room = options.max_width - min(widths[0], _LEAST_NAME)
        fit = _fitting(rest, widths, room - (_LEAST_NAME + 2 if self._words else 0))
        yield self._part(rest[:fit], widths, options, words=self._words)
        while rest := rest[fit:]:
            fit = _fitting(rest, widths, room)
            yield Text()
            yield self._part(rest[:fit], widths, options, words=False)

    def _part(self, numbers: list[int], widths: list[int], options: ConsoleOptions, *, words: bool) -> Table:
        name = max(options.max_width - sum(widths[i] + 2 for i in numbers) - (_LEAST_NAME + 2) * words, 1)
        table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
        if self._words:
            name = min(widths[0], max((name + _LEAST_NAME) // 2, _LEAST_NAME))
            table.add_column(overflow="fold", min_width=name, max_width=name)
        else:
            table.add_column(no_wrap=True, overflow="ellipsis", max_width=name)
        for i in numbers:
            table.add_column(justify="right", no_wrap=True, min_width=widths[i])
        shown = [0, *numbers]
        if words:
            table.add_column()
            shown.append(len(self._head) - 1)
        table.add_row(*(Text(self._head[i], "dim") for i in shown))
        for row in self._rows:
            table.add_row(*(row[i] for i in shown))
        return table


def _fitting(columns: Sequence[int], widths: Sequence[int], room: int) -> int:
    """How many columns fit, from the left; one at least where there are any, so that there is an end."""
    fit = used = 0
    for i in columns:
        used += widths[i] + 2
        if used > room:
            break
        fit += 1
    return max(fit, min(len(columns), 1))


def _width(cell: Text) -> int:
    """Columns of its widest line."""
    return max((line.cell_len for line in cell.split()), default=0)
