"""`headway keys`: make, list, revoke and rotate virtual keys."""

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


def register(app: typer.Typer) -> None:
    """Add the command group to the `headway` command."""
    group = typer.Typer(help="Virtual keys: who may call, and how much.", no_args_is_help=True)
    group.command("create")(create)
    group.command("list")(list_keys)
    group.command("revoke")(revoke)
    group.command("rotate")(rotate)
    app.add_typer(group, name="keys")


def create(  # noqa: PLR0913 - each option of the command is a parameter
    tenant: Annotated[str, typer.Argument(help="The tenant that it is for.")],
    *,
    role: Annotated[str, typer.Option(help="member (calls models), viewer (reads), operator or admin.")] = "member",
    name: Annotated[str, typer.Option(help="What it is for, for people.")] = "",
    model: Annotated[list[str] | None, typer.Option(help="It may call this model; may be repeated. None: all.")] = None,
    expires_in: Annotated[str | None, typer.Option(help='E.g. "90 d", "12 h"; else it never expires.')] = None,
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
    """Make a key. Its secret is shown once, here, and is nowhere else.

    [bold]Example:[/]  headway keys create acme --day "5 USD warn 4 USD" --rpm 60 --task-calls 40
    """
    from headway.app.cli.access import read_role, span
    from headway.gateway.keys import KeySettings, create_key
    from headway.gateway.stores import open_registry

    who = change()
    settings = KeySettings(
        role=read_role(role),
        name=name,
        models=tuple(model or ()),
        limits=caller_limits(rpm, tpm, concurrency, day, month),
        task=task_limits(task_calls, task_tokens, task_money, task_seconds),
        expires=None if expires_in is None else who.at + span(expires_in, "--expires-in"),
    )
    with said(open_registry(keys)) as registry:
        made = create_key(registry, tenant, settings, who)
    _show_secret(made.key.id, made.secret, made.key, as_json=as_json)


def list_keys(
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's.")] = None,
    keys: Keys = None,
    limits: Limits = None,
    as_json: Json = False,
) -> None:
    """List the keys, with what they may use and what they have used today and this month.

    [bold]Example:[/]  headway keys list --tenant acme
    """
    from headway.app.cli.access import key_rows, table, to_json
    from headway.gateway.stores import open_book, open_registry

    with said(open_registry(keys)) as registry:
        found = registry.keys(tenant)
    with said(open_book(limits if limits is not None else _file_of(keys))) as book:
        rows = key_rows(found, book)
    if as_json:
        typer.echo(to_json("headway.keys/1", "keys", rows))
        return
    typer.echo(table(rows) if rows else "There is no key yet. Make one with: headway keys create TENANT")


def revoke(
    key: Annotated[str, typer.Argument(help="The key's id, as `headway keys list` shows it.")],
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Make a key useless. Gateways notice within a second or two; calls under way end as they would.

    [bold]Example:[/]  headway keys revoke k0123456789
    """
    from headway.app.cli.access import to_json
    from headway.gateway.keys import revoke_key
    from headway.gateway.stores import open_registry

    with said(open_registry(keys)) as registry:
        revoked = revoke_key(registry, key, change())
    typer.echo(to_json("headway.key/1", "key", revoked) if as_json else f"{revoked.id} is revoked.")


def rotate(
    key: Annotated[str, typer.Argument(help="The key's id, as `headway keys list` shows it.")],
    overlap: Annotated[str, typer.Option(help='How long the old secret works beside the new one, e.g. "1 h".')] = "0 s",
    keys: Keys = None,
    as_json: Json = False,
) -> None:
    """Give a key another secret; its limits and its use go on. The new secret is shown once.

    [bold]Example:[/]  headway keys rotate k0123456789 --overlap "1 h"
    """
    from headway.app.cli.access import span
    from headway.gateway.keys import rotate_key
    from headway.gateway.stores import open_registry

    with said(open_registry(keys)) as registry:
        made = rotate_key(registry, key, span(overlap, "--overlap"), change())
    _show_secret(made.key.id, made.secret, made.key, as_json=as_json)


def _show_secret(key: str, secret: str, document: object, *, as_json: bool) -> None:
    from headway.app.cli.access import to_json

    if as_json:
        typer.echo(to_json("headway.key/1", "key", document, secret=secret))
        return
    typer.echo(f"{key}  made. Its secret, shown this once:")
    typer.echo(f"  {secret}")


def _file_of(keys: str | None) -> str | None:
    """Limits stand in the file of the keys, unless the keys are in a database."""
    return None if keys is None or "://" in keys else keys
