"""`headway reload`: have a running gateway read its configuration again."""

from typing import Annotated

import typer

from headway.app.cli.steered import Key, Url


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("reload")(reload)


def reload(
    url: Url = None,
    key: Key = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For a machine: what changed, and what needs a restart.")
    ] = False,
) -> None:
    """Have a running gateway read its configuration again; no call is dropped. A broken one changes nothing.

    Where callers need keys, it takes one of the role admin.

    [bold]Example:[/]  headway reload
    """
    import msgspec

    from headway.app.reloading import RELOAD_PATH, Reloaded
    from headway.app.steering import URL, steer

    said = steer(url or URL, key, "POST", RELOAD_PATH)
    if as_json:
        typer.echo(msgspec.json.encode(said).decode())
    else:
        told = msgspec.convert(said, Reloaded).told()
        typer.echo(f"{told[:1].upper()}{told[1:]}.")
