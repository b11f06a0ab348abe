"""The `headway` command: its sub-commands, and how an error ends it."""

import sys

import typer
from rich.console import Console

from headway.core.errors import HeadwayError

app = typer.Typer(
    name="headway",
    help="Makes AI agents predictably fast: point an agent's base URL at Headway, then ask where its time went.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line; a known error ends it with its message and status 1, never a traceback."""
    try:
        app()
    except HeadwayError as error:
        Console(stderr=True).print(f"[bold red]headway:[/] {error.what}", highlight=False)
        if error.fix:
            Console(stderr=True).print(f"  {error.fix}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
