"""`headway compare`: what moved between two sets of tasks."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("compare")(compare)


def compare(
    before: Annotated[str, typer.Argument(help="The first set: a file, a folder, a pattern in quotes.")],
    after: Annotated[str, typer.Argument(help="The second set.")],
    config: Annotated[Path | None, typer.Option(help="Own prices; default: headway.toml here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.compare/1.")] = False,
) -> None:
    """Compare two sets of tasks: which phase moved, by how much, and whether that is more than chance.

    [bold]Example[/]

    headway compare traces/monday 'traces/tuesday/*.json'
    """
    from random import Random

    from headway.app.explaining import read_rows
    from headway.app.gathering import processors
    from headway.app.progress import reading
    from headway.app.settings import load
    from headway.trace.compare import compare as compared
    from headway.trace.stats import Bootstrap

    prices = load(config).prices
    with reading() as heard:
        first = read_rows([before], prices, heard, processes=processors())
    with reading() as heard:
        second = read_rows([after], prices, heard, processes=processors())
    dice = Random(0)  # noqa: S311 - a fixed seed gives the same answer every time
    found = compared(first, second, Bootstrap(dice.betavariate))
    if as_json:
        from headway.app.report.compare_document import compare_json

        typer.echo(compare_json(found, (before, after)))
    else:
        from headway.app.report.comparison import render_comparison
        from headway.app.report.layout import console

        console().print(render_comparison(found, (before, after)))
