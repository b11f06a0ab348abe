"""The waterfall on a terminal: a row per span, indented as a tree, with its phases drawn to scale."""

from collections import Counter
from math import ceil, floor, isinf

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import decimals_for, plural, printable, row_name
from headway.app.report.fold import Fold, fold, raster
from headway.app.report.holding import along_the_path
from headway.app.report.legend import SIGNS
from headway.trace.anatomy import Anatomy
from headway.trace.waterfall import Bar

ROWS = 24
"""Spans shown before the others are folded away."""
_DEEPEST = 8
"""Indentation, in levels, beyond which a tree is drawn no deeper."""
_NAME_SHARE = 0.32
_EXTENT = ("╌", "~")
"""A span that is made of others, or rows folded together: only where it begins and ends."""


class Waterfall:
    """Fits the width it is given: numbers whole, names shortened, bars as wide as what is left."""

    def __init__(self, anatomy: Anatomy, *, rows: int = ROWS) -> None:
        self._anatomy = anatomy
        self._rows = fold(anatomy.bars, rows)
        self._path = along_the_path(anatomy.bars)
        self._decimals = decimals_for(anatomy.e2e)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        times = [self._times(row) for row in self._rows]
        header = ("start", "took", "slack") if any(time[2] for time in times) else ("start", "took")
        widths = [max(len(title), *(len(t[i]) for t in times)) for i, title in enumerate(header)] if times else []
        name = int(options.max_width * _NAME_SHARE)
        columns = max(options.max_width - name - 4 - sum(widths) - 2 * len(widths), 10)
        table = Table.grid(pad_edge=False)
        table.add_column(no_wrap=True, width=2)
        table.add_column(no_wrap=True, overflow="ellipsis", width=name)
        table.add_column(no_wrap=True, width=columns + 2)
        for width in widths:
            table.add_column(no_wrap=True, justify="right", width=width + 2)
        table.add_row("", "", Text(f" {self._axis(columns)} ", "dim"), *(Text(title, "dim") for title in header))
        if self._anatomy.task_ttft is not None:
            table.add_row("", "", Text(f" {self._first_output(self._anatomy.task_ttft, columns)} ", "dim"))
        for row, time in zip(self._rows, times, strict=True):
            along = self._along(row)
            off = "" if along else "dim"
            bar = Text.assemble(" ", self._drawn(row, columns, ascii_only=options.ascii_only), " ")
            mark = Text("●" if along else "○", style=off or "bold")
            table.add_row(mark, _name(row, name, off), bar, *(Text(value, off) for value in time[: len(header)]))
        yield table
        yield self._legend(options.max_width, ascii_only=options.ascii_only)
        yield from self._failures()

    def _times(self, row: Bar | Fold) -> tuple[str, str, str]:
        slack = ""
        if isinstance(row, Bar) and not self._along(row):
            slack = "?" if row.slack is None else "∞" if isinf(row.slack) else f"{row.slack:,.{self._decimals}f}"
        if isinstance(row, Bar) and row.waited is not None:  # a person's wait keeps nothing waiting that is on the path
            return (
                "before" if row.off_axis else f"{row.start:,.{self._decimals}f}",
                f"{row.took:,.{self._decimals}f}",
                "",
            )
        return f"{row.start:,.{self._decimals}f}", f"{row.end - row.start:,.{self._decimals}f}", slack

    def _along(self, row: Bar | Fold) -> bool:
        return row.on_path > 0 if isinstance(row, Fold) else row.span.id in self._path

    def _axis(self, columns: int) -> str:
        end = f"{self._anatomy.e2e:,.{self._decimals}f} s"
        half = f"{self._anatomy.e2e / 2:,.{self._decimals}f}"
        line = "0" + half.center(columns - 2)[: columns - 1 - len(end)]
        return line + end.rjust(columns - len(line))

    def _first_output(self, seconds: float, columns: int) -> str:
        at = min(floor(seconds / self._anatomy.e2e * columns), columns - 1) if self._anatomy.e2e > 0 else 0
        note = "first output"
        return f"{note} ▾".rjust(at + 1) if at > len(note) else f"{' ' * at}▾ {note}"

    def _drawn(self, row: Bar | Fold, columns: int, *, ascii_only: bool) -> Text:
        if isinstance(row, Bar) and row.off_axis:
            return Text(" " * columns)
        drawn = Text()
        cells = raster(row.pieces, columns, self._anatomy.e2e)
        scale = columns / self._anatomy.e2e if self._anatomy.e2e > 0 else 0.0
        first = min(floor(row.start * scale), columns - 1)
        last = max(first, min(ceil(row.end * scale), columns) - 1)
        for cell in range(columns):
            if cell in cells:
                sign = SIGNS[cells[cell]]
                style = sign.style if row.on_path > 0 else f"{sign.style} dim"
                drawn.append(sign.letter if ascii_only else sign.glyph, style)
            elif first <= cell <= last:
                drawn.append(_EXTENT[ascii_only], "dim")
            else:
                drawn.append(" ")
        return drawn

    def _legend(self, width: int, *, ascii_only: bool) -> Text:
        seen = {piece.phase for row in self._rows for piece in row.pieces}
        seen |= self._anatomy.phases.keys()
        items = [
            (sign.letter if ascii_only else sign.glyph * 2, sign.style, sign.label)
            for phase, sign in SIGNS.items()
            if phase in seen
        ]
        lines = [Text()]
        if any(isinstance(row, Fold) or not (row.pieces or row.off_axis) for row in self._rows):
            items.append((_EXTENT[ascii_only] * 2, "dim", "made of others"))
        for glyph, style, name in items:
            item = Text.assemble((glyph, style), (f" {name}   ", "dim"))
            if lines[-1].cell_len + item.cell_len > width:
                lines.append(Text())
            lines[-1].append(item)
        return Text("\n").join(lines)

    def _failures(self) -> RenderResult:
        kinds = Counter(bar.span.error for bar in self._anatomy.bars if bar.span.error is not None)
        if kinds:
            listed = ", ".join(f"{number:,} x {printable(kind)}" for kind, number in kinds.most_common(5))
            yield Text(f"✗ failed: {listed}" + (" …" if len(kinds) > 5 else ""), style="red")  # noqa: PLR2004 - as above


def _name(row: Bar | Fold, width: int, off: str) -> Text:
    indent = "  " * min(row.depth, _DEEPEST)
    if isinstance(row, Bar):
        failed = row.span.error is not None
        name = ("✗ " if failed else "") + row_name(row)
        return Text(indent + name, "red" if failed else off)
    parts = [plural(number, noun) for number, noun in ((row.calls, "call"), (row.tools, "tool")) if number]
    if row.failures:
        parts.insert(0, f"{row.failures:,} ✗")
    text = f"{indent}⋯ {plural(row.spans, 'span')}"
    for mark, part in zip((":", *"," * len(parts)), parts, strict=False):
        if len(text) + len(part) + 2 > width:
            break
        text += f"{mark} {part}"
    return Text(text, "dim italic")
