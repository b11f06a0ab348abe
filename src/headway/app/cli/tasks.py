"""`headway tasks`: what was recorded, newest first."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("tasks")(tasks)


def tasks(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 20,
    errors: Annotated[bool, typer.Option("--errors", help="Only tasks in which something failed.")] = False,
    model: Annotated[str | None, typer.Option(help="Only tasks that called this model.")] = None,
    store: Annotated[
        Path | None, typer.Option(help="The store of spans; default: where `headway serve` puts it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.tasks/1.")] = False,
) -> None:
    """List the recorded tasks, the one active last first.

    The id's beginning, as shown, is enough for `headway explain`.

    [bold]Example:[/]  headway tasks --limit 5 --errors
    """
    from headway.core.config import default_store
    from headway.trace.store import Store, nothing_recorded

    path = store or default_store()
    with Store(path, readonly=True) as opened:
        rows = opened.tasks(limit, errors=errors, model=model)
        empty = opened.last() is None
        others = opened.neighbours(row.task for row in rows)
    if as_json:
        from headway.app.report.tasks_document import tasks_json

        typer.echo(tasks_json(rows))
        return
    if empty:
        raise nothing_recorded(path)
    from headway.app.report.layout import console
    from headway.app.report.tasks import TaskTable

    console().print(TaskTable(rows, others))
