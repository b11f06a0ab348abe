"""Progress of long work, on standard error and only where somebody watches."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from headway.app.gathering import Heard
from headway.app.report.figures import plural
from headway.trace import filing


@contextmanager
def reading() -> Generator[Heard]:
    """A bar of the bytes that were read, and the number of tasks that were worked out; gone when all is done."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        TextColumn("{task.fields[tasks]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        work = bar.add_task("reading", total=None, tasks="")

        def heard(so_far: filing.Progress) -> None:
            tasks = f"{plural(so_far.tasks, 'task')} worked out" if so_far.tasks else ""
            bar.update(work, completed=so_far.read, total=so_far.size, tasks=tasks)

        yield heard


@contextmanager
def working(what: str) -> Generator[None]:
    """Say what is being done for as long as it is."""
    with Console(stderr=True).status(what):
        yield
