"""`headway formats`: what `headway explain` can read."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("formats")(formats)


def formats(
    as_json: Annotated[bool, typer.Option("--json", help="For a machine: schema headway.formats/1.")] = False,
) -> None:
    """List the trace formats that are known; others can be added under the entry point headway.sources.

    [bold]Example[/]

    headway formats
    """
    import msgspec

    from headway.trace.sources.registry import installed

    known = {source.name: source.title for source in installed()}
    if as_json:
        typer.echo(msgspec.json.encode({"schema": "headway.formats/1", "formats": known}).decode())
        return
    width = max(map(len, known), default=0)
    for name, title in known.items():
        typer.echo(f"{name.ljust(width)}  {title}")
