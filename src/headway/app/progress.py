"""Progress of long work, on standard error and only where somebody watches."""

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from headway.app.explaining import Heard
from headway.trace.sources.intake import Intake


@contextmanager
def reading() -> Generator[Heard]:
    """A bar of the bytes that were read, gone when all is read."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("reading"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        work = bar.add_task("reading", total=None)

        def heard(intake: Intake, read: int) -> None:
            bar.update(work, advance=read, total=intake.total_bytes)

        yield heard
