"""`headway pin`, `unpin` and `pins`: which model answers a name for a while, against the rules."""

from typing import Annotated

import typer

from headway.app.cli.access import Json
from headway.app.cli.steered import Key, Url

Model = Annotated[str, typer.Argument(help="The name that is asked for; left out: any.")]
Tenant = Annotated[str, typer.Option(help="Only calls of this tenant.")]
Task = Annotated[str, typer.Option(help="Only calls of this task.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the `headway` command."""
    app.command("pin")(pin)
    app.command("unpin")(unpin)
    app.command("pins")(pins)


def pin(  # noqa: PLR0913 - each option of the command is a parameter
    model: Model = "",
    *,
    to: Annotated[str, typer.Option(help="The model that answers, as replicas serve it.")],
    lasting: Annotated[str, typer.Option("--for", help="How long, e.g. 30 min, 2 h or 1 d.")],
    tenant: Tenant = "",
    task: Task = "",
    reason: Annotated[str, typer.Option(help="Why the rules do not do; it is in each call's receipt.")] = "not said",
    url: Url = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Have a model answer a name for a while, whatever the configuration says.

    [bold]Example:[/]  headway pin fast --to qwen3-small --for "2 h" --reason "large is down"
    """
    from headway.app.cli.access import moment, span, to_json
    from headway.app.steering import URL, steer
    from headway.gateway.pinning import PATH, Wanted

    wanted = Wanted(to=to, seconds=span(lasting, "--for"), model=model, tenant=tenant, task=task, reason=reason)
    made = steer(url or URL, key, "POST", PATH, body=wanted)
    if as_json:
        typer.echo(to_json("headway.pin/1", "pin", made))
    else:
        typer.echo(f"{to} answers {model or 'every name'} until {moment(made['until'])}.")


def unpin(
    model: Model = "",
    *,
    tenant: Tenant = "",
    task: Task = "",
    url: Url = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Let the configuration decide again, before a pin ends by itself.

    [bold]Example:[/]  headway unpin fast
    """
    from headway.app.cli.access import to_json
    from headway.app.steering import URL, steer
    from headway.gateway.pinning import PATH, About

    gone = steer(url or URL, key, "DELETE", PATH, body=About(model=model, tenant=tenant, task=task))
    if as_json:
        typer.echo(to_json("headway.pin/1", "pin", gone))
    else:
        typer.echo(f"{gone['to']} answers {model or 'every name'} no more.")


def pins(url: Url = None, key: Key = None, as_json: Json = False) -> None:
    """List the pins that hold, the next to end first.

    [bold]Example:[/]  headway pins
    """
    import msgspec

    from headway.app.cli.access import moment, table, to_json
    from headway.app.steering import URL, steer
    from headway.gateway.pinning import PATH
    from headway.policy.models.pins import Pin

    found = steer(url or URL, key, "GET", PATH)["pins"]
    if as_json:
        typer.echo(to_json("headway.pins/1", "pins", found))
        return
    rows = [
        {
            "asked for": one.model or "any",
            "tenant": one.tenant or "any",
            "task": one.task or "any",
            "answers": one.to,
            "until": moment(one.until),
            "by": one.by,
            "reason": one.reason,
        }
        for one in msgspec.convert(found, list[Pin])
    ]
    typer.echo(table(rows) if rows else "Nothing is pinned.")
