"""`headway check`: what is wrong with a configuration, before anything is started with it."""

import os
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("check")(check)


def check(
    config: Annotated[Path, typer.Argument(help="The configuration.")] = Path("headway.toml"),
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of configurations instead.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="For a machine: an array of line, key and problem; empty: all is well.")
    ] = False,
) -> None:
    """Check a configuration: every mistake at once, each with its line. Exit status 1 if there is any.

    Environment variables that it names have to be set, as they have to be for headway serve.

    Editors that read JSON schemas complete and check the file as it is written: headway check --schema > schema.json

    [bold]Example:[/]  headway check headway.toml
    """
    import msgspec

    from headway.app.config.checking import check_config
    from headway.app.config.reading import BadConfigError
    from headway.app.config.written import File

    if schema:
        typer.echo(msgspec.json.format(msgspec.json.encode(File.model_json_schema())).decode())
        return
    try:
        check_config(config, os.environ)
    except BadConfigError as error:
        if not as_json:
            raise
        typer.echo(msgspec.json.encode(error.mistakes).decode())
        raise typer.Exit(1) from error
    typer.echo("[]" if as_json else f"{config} is well.")
