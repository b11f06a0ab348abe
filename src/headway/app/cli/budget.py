"""`headway budget`: a budget to begin with, and what an addition would do to it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.trace.budget_review import Addition


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    budget = typer.Typer(
        help="Budgets in seconds, calls, tokens and money; `headway explain FILES --budget` checks one.",
        no_args_is_help=True,
    )
    budget.command("suggest")(suggest)
    budget.command("review")(review)
    app.add_typer(budget, name="budget")


def suggest(
    names: Annotated[list[str], typer.Argument(help="Trace files, folders, patterns, -.", show_default=False)],
    config: Annotated[Path | None, typer.Option(help="Own prices; default: headway.toml here.")] = None,
) -> None:
    """Propose a budget that these tasks keep, with a tenth to spare, as TOML on standard output.

    Percentiles that the tasks are too few to bound are left out, and so is what none of them tells; it says which.

    [bold]Example[/]

    headway budget suggest traces/ > headway.toml
    """
    from headway.app.explaining import read_rows
    from headway.app.gathering import processors
    from headway.app.progress import reading
    from headway.app.report.figures import plural
    from headway.app.settings import load
    from headway.core.budget import write_budget
    from headway.trace.budgets import suggest as suggested
    from headway.trace.budgets import unsure

    with reading() as heard:
        rows = read_rows(names, load(config).prices, heard, processes=processors())
    timed = sum(row.e2e is not None for row in rows)
    typer.echo(
        f"# From {plural(len(rows), 'task')}, {timed:,} of them timed: upper ends of 95 % intervals, and a tenth to"
        " spare."
    )
    for sentence in unsure(rows):
        typer.echo(f"# {sentence}")
    typer.echo(write_budget(suggested(rows)), nl=False)


def review(
    names: Annotated[list[str], typer.Argument(help="Trace files, folders, patterns, -.", show_default=False)],
    add: Annotated[
        list[str],
        typer.Option("--add", help='"tool:rerank 0.4s", "tool:search 1.2s x3", "context +2000 tokens"; repeat it.'),
    ],
    config: Annotated[Path | None, typer.Option(help="The budget and own prices; default: headway.toml here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.budget/1.")] = False,
) -> None:
    """Say what an addition would do to the budget; status 3 when it would be broken, 4 when that is unknown.

    [bold]Example[/]

    headway budget review traces/ --add "tool:rerank 0.4s"
    """
    from headway.app.cli.budget_status import status
    from headway.app.explaining import read_rows
    from headway.app.gathering import processors
    from headway.app.progress import reading
    from headway.app.settings import load
    from headway.trace.budget_review import added
    from headway.trace.budgets import check, unknown_stages

    additions, settings = _additions(add), load(config)
    budget = settings.budget()
    with reading() as heard:
        rows = read_rows(names, settings.prices, heard, processes=processors())
    made, assumed = added(rows, additions, settings.prices)
    lines, absent = check(budget, made), unknown_stages(budget, made)
    if as_json:
        from headway.app.report.compare_document import budget_json

        typer.echo(budget_json(lines, absent))
    else:
        from headway.app.report.budget_table import render_budget
        from headway.app.report.figures import plural
        from headway.app.report.layout import console

        already = sum(line.state == "broken" for line in check(budget, rows))
        before = f"Without the addition, {already:,} of them {'is' if already == 1 else 'are'} broken."
        title = f"{settings.path} against {plural(len(rows), 'task')} with: {', '.join(add)}"
        console().print(render_budget(lines, absent, title, (before, *assumed)))
    if code := status(lines):
        raise typer.Exit(code)


def _additions(texts: "Sequence[str]") -> "list[Addition]":
    from headway.app.cli.values import values
    from headway.trace.budget_review import addition

    if not texts:
        raise UsageError("Nothing is added.", fix='Say what with --add, e.g. --add "tool:rerank 0.4s".')
    with values():
        return [addition(text) for text in texts]
