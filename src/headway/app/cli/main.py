"""The `headway` command: its sub-commands, and how an error ends it."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headway.app.cli import (
    ask,
    audit,
    bench,
    break_even,
    budget,
    cache,
    check,
    compare,
    debug,
    demo,
    explain,
    formats,
    import_,
    keys,
    mcp,
    models,
    pins,
    refusal,
    reload,
    serve,
    tasks,
    tenants,
    why,
)
from headway.app.cli.stop import told
from headway.core.errors import HeadwayError, UsageError

app = typer.Typer(
    name="headway",
    help="Makes AI agents predictably fast: point an agent's base URL at Headway, then ask where its time went.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
ask.register(app)
break_even.register(app)
refusal.register(app)
debug.register(app)
check.register(app)
demo.register(app)
models.register(app)
serve.register(app)
reload.register(app)
explain.register(app)
bench.register(app)
budget.register(app)
cache.register(app)
compare.register(app)
formats.register(app)
import_.register(app)
tasks.register(app)
why.register(app)
mcp.register(app)
pins.register(app)
keys.register(app)
tenants.register(app)
audit.register(app)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headway {version('headway')}")
        raise typer.Exit


@app.callback()
def _headway(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a known error ends it with its message and status 1 (2: wrongly used), never a traceback.

    Being told to stop ends it with a line that says so, and status 130 (Ctrl-C) or 143 (SIGTERM).
    """
    try:
        with told():
            app()
    except HeadwayError as error:
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"[bold red]headway:[/] {escape(error.what)}")
        if error.fix:
            console.print(f"  {escape(error.fix)}")
        sys.exit(2 if isinstance(error, UsageError) else 1)
