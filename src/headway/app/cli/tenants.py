"""`headway tenants`: who is kept apart from whom, and what each may use."""

from typing import Annotated

import typer

from headway.app.cli.access import Json, Keys, Limits, change, said
from headway.app.cli.limits import (
    AtOnce,
    Calls,
    Day,
    Minute,
    Month,
    TaskMoney,
    TaskSeconds,
    TaskTokens,
    TokensMinute,
    caller_limits,
    task_limits,
)

Name = Annotated[str, typer.Argument(help="The tenant's name, as `headway tenants list` shows it.")]
Title = Annotated[str, typer.Option("--title", help="What it is, for people.")]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="Its keys may call this model; may be repeated. None: all.")
]


def register(app: typer.Typer) -> None:
    """Add the command group to the `headway` command."""
    group = typer.Typer(help="Tenants: teams, customers, environments that share nothing.", no_args_is_help=True)
    group.command("create")(create)
    group.command("list")(list_tenants)
    group.command("limit")(limit)
    group.command("disable")(disable)
    group.command("enable")(enable)
    app.add_typer(group, name="tenants")


def create(  # noqa: PLR0913 - each option of the command is a parameter
    tenant: Annotated[str, typer.Argument(help="Up to 64 letters, digits, dots, dashes and _.")],
    *,
    title: Title = "",
    model: Models = None,
    rpm: Minute = None,
    tpm: TokensMinute = None,
    concurrency: AtOnce = None,
    day: Day = None,
    month: Month = None,
    task_calls: Calls = None,
    task_tokens: TaskTokens = None,
    task_money: TaskMoney = None,
    task_seconds: TaskSeconds = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Make a tenant. Its limits are of all its keys together.

    [bold]Example:[/]  headway tenants create acme --month "100 USD" --concurrency 20
    """
    from headway.app.cli.access import to_json
    from headway.core.access import Tenant, TenantId
    from headway.gateway.keys import create_tenant
    from headway.gateway.stores import open_registry

    new = Tenant(
        id=TenantId(tenant),
        name=title,
        models=tuple(model or ()),
        limits=caller_limits(rpm, tpm, concurrency, day, month),
        task=task_limits(task_calls, task_tokens, task_money, task_seconds),
    )
    with said(open_registry(keys)) as registry:
        made = create_tenant(registry, new, change())
    typer.echo(
        to_json("headway.tenant/1", "tenant", made)
        if as_json
        else f"{made.id}  made. Give it a key with: headway keys create {made.id}"
    )


def list_tenants(keys: Keys = None, limits: Limits = None, as_json: Json = False) -> None:
    """List the tenants, with what they may use and what they have used today and this month.

    [bold]Example:[/]  headway tenants list
    """
    from headway.app.cli.access import table, tenant_rows, to_json
    from headway.gateway.stores import open_book, open_registry

    with said(open_registry(keys)) as registry:
        found = registry.tenants()
    beside = None if keys is None or "://" in keys else keys
    with said(open_book(limits if limits is not None else beside)) as book:
        rows = tenant_rows(found, book)
    if as_json:
        typer.echo(to_json("headway.tenants/1", "tenants", rows))
        return
    typer.echo(table(rows) if rows else "There is no tenant yet. Make one with: headway tenants create NAME")


def limit(  # noqa: PLR0913 - each option of the command is a parameter
    tenant: Name,
    *,
    rpm: Minute = None,
    tpm: TokensMinute = None,
    concurrency: AtOnce = None,
    day: Day = None,
    month: Month = None,
    task_calls: Calls = None,
    task_tokens: TaskTokens = None,
    task_money: TaskMoney = None,
    task_seconds: TaskSeconds = None,
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Set a tenant's limits anew: those that are not given are lifted. What was used stays used.

    [bold]Example:[/]  headway tenants limit acme --month "200 USD" --concurrency 40
    """
    import msgspec

    from headway.gateway.keys import change_tenant
    from headway.gateway.stores import open_registry

    limits = caller_limits(rpm, tpm, concurrency, day, month)
    task = task_limits(task_calls, task_tokens, task_money, task_seconds)
    with said(open_registry(keys)) as registry:
        old = registry.tenant(tenant)
        changed = change_tenant(registry, msgspec.structs.replace(old, limits=limits, task=task), change())
    _print(changed, f"{tenant} has these limits now.", as_json=as_json)


def disable(tenant: Name, keys: Keys = None, as_json: Json = False) -> None:
    """Switch a tenant off: all its keys are refused until it is switched on again.

    [bold]Example:[/]  headway tenants disable acme
    """
    _switch(tenant, keys, off=True, as_json=as_json)


def enable(tenant: Name, keys: Keys = None, as_json: Json = False) -> None:
    """Switch a tenant on again.

    [bold]Example:[/]  headway tenants enable acme
    """
    _switch(tenant, keys, off=False, as_json=as_json)


def _switch(tenant: str, keys: str | None, *, off: bool, as_json: bool) -> None:
    import msgspec

    from headway.gateway.keys import change_tenant
    from headway.gateway.stores import open_registry

    with said(open_registry(keys)) as registry:
        old = registry.tenant(tenant)
        changed = change_tenant(registry, msgspec.structs.replace(old, disabled=off), change())
    _print(changed, f"{tenant} is {'off' if off else 'on'}.", as_json=as_json)


def _print(tenant: object, line: str, *, as_json: bool) -> None:
    from headway.app.cli.access import to_json

    typer.echo(to_json("headway.tenant/1", "tenant", tenant) if as_json else line)
