"""`headway import`: traces of any format into one file that is explained at once."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headway.core.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("import")(import_)


def import_(
    names: Annotated[list[str], typer.Argument(help="Trace files, folders, patterns in quotes, archives, or - .")],
    into: Annotated[Path, typer.Option(help="The archive; made where it is not there, else added to.")],
    config: Annotated[Path | None, typer.Option(help="Own prices; default: headway.toml here.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes that read large files; default: one for each processor.")
    ] = None,
) -> None:
    """Put the tasks of trace files into an archive, so that a large set is read once and explained often.

    A task that is in the archive already is replaced. When anything fails, the archive is left as it was.

    [bold]Example[/]

    headway import traces/ --into traces.headway

    headway explain traces.headway
    """
    from headway.app.gathering import Gathering, processors
    from headway.app.progress import reading
    from headway.app.report.figures import plural
    from headway.app.report.quality import left_out
    from headway.app.settings import load
    from headway.trace.archive import Archive

    prices = load(config).prices
    if any(Path(name).exists() and into.exists() and into.samefile(name) for name in names):
        raise UsageError(f"{into} cannot be put into itself.", fix="Leave it out of the files.")
    with reading() as heard, _kept_only_if_filled(into), Archive(into) as archive:
        gathering = Gathering(names, prices, processes=jobs or processors(), heard=heard)
        added = archive.add(gathering.rows(), prices)
        held = len(archive)
    intake = gathering.intake
    for sentence in left_out(intake.skipped, intake.refused) if intake is not None else ():
        typer.echo(sentence, err=True)
    typer.echo(f"{into}: {plural(added, 'task')} put in, {plural(held, 'task')} in all.")
    typer.echo(f"Explain them with: headway explain {into}")


@contextmanager
def _kept_only_if_filled(into: Path) -> Generator[None]:
    """A new archive is taken away again when nothing comes into it."""
    new = not into.exists()
    try:
        yield
    except BaseException:
        if new:
            into.unlink(missing_ok=True)
        raise
