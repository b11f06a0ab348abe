"""`headway audit`: what was changed, and what was refused."""

from typing import Annotated

import typer

from headway.app.cli.access import Json, Keys, said


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("audit")(audit)


def audit(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 20,
    tenant: Annotated[str | None, typer.Option(help="Only what concerns this tenant.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only actions that begin so: key., tenant., call. or call.limited.")
    ] = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Show changes of keys and tenants, and calls that were refused, newest first.

    [bold]Example:[/]  headway audit --tenant acme --action call.
    """
    from headway.app.cli.access import moment, table, to_json
    from headway.gateway.stores import open_registry

    with said(open_registry(keys)) as registry:
        records = registry.audited(limit, tenant=tenant, action=action)
    if as_json:
        typer.echo(to_json("headway.audit/1", "records", records))
        return
    rows = [
        {
            "at (UTC)": moment(record.at),
            "who": record.actor,
            "what": record.action,
            "on": record.subject,
            "tenant": record.tenant,
            "times": record.count,
            "detail": record.detail,
        }
        for record in records
    ]
    typer.echo(table(rows) if rows else "Nothing is recorded.")
