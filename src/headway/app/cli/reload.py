"""`headway reload`: have a running gateway read its configuration again."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("reload")(reload)


def reload(
    url: Annotated[str, typer.Option(help="Where the gateway listens.")] = "http://127.0.0.1:8080",
    key: Annotated[
        str | None, typer.Option(envvar="HEADWAY_KEY", help="A key of the role admin, where callers need keys.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For a machine: what changed, and what needs a restart.")
    ] = False,
) -> None:
    """Have a running gateway read its configuration again; no call is dropped. A broken one changes nothing.

    [bold]Example:[/]  headway reload
    """
    import msgspec

    from headway.app.reloading import RELOAD_PATH, Reloaded
    from headway.app.steering import steer

    said = steer(url, key, "POST", RELOAD_PATH)
    if as_json:
        typer.echo(msgspec.json.encode(said).decode())
    else:
        told = msgspec.convert(said, Reloaded).told()
        typer.echo(f"{told[:1].upper()}{told[1:]}.")
