"""`headway cache`: what the cache of a gateway that runs has saved, and dropping answers from it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.app.cli.access import Json
from headway.app.cli.steered import Key, Url

if TYPE_CHECKING:
    from headway.gateway.caches.steering import Shown


def register(app: typer.Typer) -> None:
    """Add the command group to the `headway` command."""
    group = typer.Typer(help="Kept answers of a gateway that runs: what they save, and dropping them.")
    group.command("report", no_args_is_help=False)(report)
    group.command("drop", no_args_is_help=True)(drop)
    app.add_typer(group, name="cache", no_args_is_help=True)


def report(url: Url = None, key: Key = None, as_json: Json = False) -> None:
    """Show what the cache holds and has saved, rule by rule.

    With several workers it is of all that serve now; what one counted that has ended is in /metrics alone.

    [bold]Example:[/]  headway cache report --url http://127.0.0.1:8080
    """
    import msgspec

    from headway.gateway.caches.steering import PATH, Shown

    answer = _steer(url, key, "GET", PATH)
    if as_json:
        typer.echo(msgspec.json.encode(answer).decode())
        return
    for line in _lines(msgspec.convert(answer, Shown)):
        typer.echo(line)


def drop(
    *,
    tag: Annotated[list[str] | None, typer.Option(help="Answers with this tag; may be repeated.")] = None,
    tenant: Annotated[
        str | None, typer.Option(help="This tenant's answers; with --tag, only its own of those.")
    ] = None,
    rule: Annotated[str | None, typer.Option(help="Answers that this rule keeps.")] = None,
    version: Annotated[str | None, typer.Option(help="With --rule: only those of this version of it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All answers.")] = False,
    url: Url = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Drop kept answers, in all workers and in the Redis that they share.

    [bold]Example:[/]  headway cache drop --tag docs --tenant acme
    """
    import msgspec

    from headway.gateway.caches.steering import PATH
    from headway.policy.cache.labels import Drop

    what = Drop(tags=tuple(tag or ()), tenant=tenant, rule=rule, version=version, everything=everything)
    what.labels()
    answer = _steer(url, key, "POST", f"{PATH}/drop", what)
    if as_json:
        typer.echo(msgspec.json.encode(answer).decode())
        return
    count, workers = answer["dropped"], answer["workers"]
    kept = "1 answer" if count == 1 else f"{count} answers"
    typer.echo(f"Dropped {kept}, by {'1 worker' if workers == 1 else f'{workers} workers'}.")


def _steer(url: str | None, key: str | None, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
    from headway.app.steering import URL, steer
    from headway.core.errors import NotFoundError

    try:
        return steer(url or URL, key, method, path, body=body)
    except NotFoundError as error:
        raise NotFoundError(
            "This gateway keeps no answers.", fix="Write a rule under [[cache.rules]] (docs/caching.md) and restart it."
        ) from error


def _lines(shown: "Shown") -> list[str]:
    from headway.app.cli.access import table

    memory = shown.memory
    lines = [
        f"of       {'1 worker' if shown.workers == 1 else f'{shown.workers} workers together'}",
        f"answers  {memory.entries:,} in {memory.bytes:,} of {memory.limit:,} bytes",
        "gone     " + ", ".join(f"{count:,} {reason}" for reason, count in shown.removed.items()),
        f"waiting  {memory.waiters:,} calls for {memory.waiting:,} under way",
    ]
    if memory.bytes:
        lines.append(
            f"value    {memory.worth:,.1f} s saved by what is kept now: {memory.worth / memory.bytes:.2g} s a byte"
        )
    if shown.shared is not None:
        shared = shown.shared
        state = "up" if shared.up else "away: calls go on without it"
        lines.append(f"shared   {state}; {shared.found:,} of {shared.lookups:,} found, {shared.troubles:,} troubles")
    rows = [
        {
            "rule": name,
            "given": sum(one.hits.values()),
            "by": ", ".join(f"{source} {count}" for source, count in one.hits.items()),
            "made": one.misses,
            "kept": one.kept,
            "bytes": one.bytes_served,
            "s saved": f"{one.seconds_saved:,.1f}",
            "USD saved": f"{one.cost_saved / 1_000_000:,.6f}" + (" at least" if one.cost_unknown else ""),
        }
        for name, one in shown.rules.items()
    ]
    lines += ["", table(rows)]
    for name, shadow in shown.shadows.items():
        wrong = "not measured yet" if shadow.error is None else f"at most {shadow.error.upper:.1%} wrong"
        lines.append(
            f"{name} by meaning: {shadow.asked:,} asked, {shadow.found:,} found, {shadow.same:,} the same,"
            f" {shadow.other:,} another: {wrong}"
        )
    return lines
