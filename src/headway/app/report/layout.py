"""A page on a terminal: its width, its sections, its lists."""

from collections.abc import Iterable
from io import StringIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headway.app.report.figures import printable

WIDTH = 100
"""Columns of the page; narrower terminals get less."""


def console() -> Console:
    """Standard output: as wide as the terminal, or `WIDTH` where it goes to a file or another program."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDTH)


def plain(shown: RenderableType) -> str:
    """As text, of `WIDTH` columns and without colour."""
    page = Console(highlight=False, width=WIDTH, file=StringIO(), color_system=None)
    with page.capture() as text:
        page.print(shown)
    return text.get()


class Page:
    """A renderable that keeps to `WIDTH` columns whatever the console's width is."""

    def __init__(self, *parts: RenderableType) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDTH)
        yield from console.render(Padding(Group(*self._parts), (1, 2)), options.update(width=width))


def section(title: str, aside: str, *body: RenderableType) -> list[RenderableType]:
    """A heading with a quiet word beside it, what stands under it, and a blank line."""
    return [Text.assemble((title.upper(), "bold cyan"), "   ", (aside, "dim")), *body, Text()]


def bullets(sentences: Iterable[str]) -> Iterable[RenderableType]:
    """Sentences, each behind a dash."""
    for sentence in sentences:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row("-", Text(printable(sentence)))
        yield grid


def definitions(pairs: Iterable[tuple[str, str]]) -> Table:
    """Terms and what is said of them."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    for name, text in pairs:
        grid.add_row(name, Text(printable(text)))
    return grid
