"""A load while it runs, on standard error and only where somebody watches."""

from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from headway.bench.play import PlayedTask

_LATEST = 200


@contextmanager
def playing(sessions: int | None, seconds: float | None) -> Generator[Callable[[PlayedTask], None]]:
    """Tasks begun, under way and ended, the median of the latest, and calls that were cut off or refused."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("playing"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[said]}"),
        console=console,
        transient=True,
        refresh_per_second=4,
        disable=not console.is_terminal,
    )
    begun = ended = errors = 0
    latest: deque[float] = deque(maxlen=_LATEST)
    with bar:
        work = bar.add_task("playing", total=sessions, said="")

        def told(task: PlayedTask) -> None:
            nonlocal begun, ended, errors
            if task.ended is None:
                begun += 1
            else:
                ended += 1
                latest.append(task.ended - task.intended)
                errors += sum(one.received.error is not None or one.received.status != 200 for one in task.calls)  # noqa: PLR2004 - HTTP's OK
            if not bar.disable:
                p50 = f", p50 {sorted(latest)[len(latest) // 2]:.2f} s" if latest else ""
                until = "" if seconds is None else f" of {seconds:g} s"
                said = f"{begun - ended} tasks under way, {ended} ended{until}{p50}, {errors} calls failed"
                bar.update(work, completed=ended, said=said)

        yield told
