"""`headway why`: what was decided about a call, and why."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("why")(why)


def why(
    name: Annotated[str, typer.Argument(help="A call or a task: its id, or the beginning of it.", metavar="ID")],
    store: Annotated[
        Path | None, typer.Option(help="The store of spans; default: where `headway serve` puts it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.why/1.")] = False,
) -> None:
    """Tell why a call went where it went: who else could have got it, with scores, waits, failed attempts and notes.

    A task's id tells of all its calls; their ids are in what this prints, in `explain --json` and in the log of calls.

    [bold]Example:[/]  headway why 3f2a9c1e
    """
    from headway.app.naming import spans_named
    from headway.app.report.decisions_document import decisions_json, decisions_of
    from headway.core.config import default_store
    from headway.trace.store import Store

    with Store(store or default_store(), readonly=True) as opened:
        calls = decisions_of(spans_named(opened, name))
    if as_json:
        typer.echo(decisions_json(calls))
        return
    from headway.app.report.decisions import decisions_page
    from headway.app.report.layout import console

    console().print(decisions_page(calls))
