"""`headway serve`: the gateway, in front of engines of your own or local ones, until it is told to stop."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from headway.core.log_lines import LogFormat

if TYPE_CHECKING:
    from headway.app.config.written import File
    from headway.app.service import Ready, Service

_UPSTREAM = (
    "An engine or provider: URL[,model=NAME]…[,speaks=DIALECT]…[,kind=llama.cpp][,key-env=VARIABLE][,id=NAME]. "
    "May be repeated. "
    "Without model=, one upstream gets every model name; several are asked what they serve."
)


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("serve")(serve)


def serve(  # noqa: PLR0913 - each option of the command is a parameter
    *,
    config: Annotated[
        Path | None,
        typer.Option(help="Configuration; flags go before it. Default: headway.toml here, if there is one."),
    ] = None,
    upstream: Annotated[list[str] | None, typer.Option(help=_UPSTREAM, metavar="URL")] = None,
    embedded: Annotated[int | None, typer.Option(help="Start this many replicas of the local model.", min=0)] = None,
    weights: Annotated[Path | None, typer.Option(help="GGUF file for --embedded; default: the pulled model.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on; 0: a free one; default: 8080.", min=0, max=65535)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that serve calls, on one port; default: 1.", min=1, max=256)
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="On loopback, a public name it may be called by, e.g. a proxy's. May be repeated."),
    ] = None,
    admin_port: Annotated[
        int | None,
        typer.Option(help="Port of the dashboard, on 127.0.0.1 only; default: 0, a free one.", min=0, max=65535),
    ] = None,
    admin: Annotated[bool | None, typer.Option("--admin/--no-admin", help="Serve the dashboard; default: yes.")] = None,
    store: Annotated[Path | None, typer.Option(help="File for spans; default: in your data directory.")] = None,
    record: Annotated[
        bool | None,
        typer.Option("--record/--no-record", help="Record spans, so that tasks can be explained; default: yes."),
    ] = None,
    keep_text: Annotated[
        bool | None, typer.Option("--keep-text", help="Record prompts and answers too.", show_default=False)
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Routing policy; default: least-loaded, expected-seconds where calls take turns."),
    ] = None,
    body_bytes: Annotated[str | None, typer.Option(help="Largest request, e.g. 32MiB; default: 16MiB.")] = None,
    response_bytes: Annotated[
        str | None, typer.Option(help="Largest whole answer, and event of a stream; default: 64MiB.")
    ] = None,
    first_byte_seconds: Annotated[
        str | None, typer.Option(help="What an engine may take to begin its answer; default: 600.")
    ] = None,
    stall_seconds: Annotated[
        str | None, typer.Option(help="What it may take between two bytes of it; default: 120.")
    ] = None,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="Lines of the log: for a person (default), or JSON.")
    ] = None,
    log_calls: Annotated[
        bool | None, typer.Option("--log-calls", help="A line of the log for each call.", show_default=False)
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(envvar="HEADWAY_KEYS", help="Callers need a key; where these are: a file, or postgresql://…"),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(envvar="HEADWAY_LIMITS", help="Where use is counted: a file, or redis://…; else with the keys."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Say on standard output, in one line of JSON, when all is ready.")
    ] = False,
) -> None:
    """Serve an endpoint for OpenAI's and Anthropic's clients that sees, records and routes every call.

    Runs until SIGTERM or Ctrl-C, then lets calls under way end for up to 30 s; a second signal stops it at once. Exit
    status 0 once it has served; 130 (Ctrl-C) or 143 (SIGTERM) where it was stopped before it did.

    Example: headway serve --upstream http://127.0.0.1:8000/v1

    Example: headway serve --embedded 2
    """
    import uvloop

    from headway.app.config.reading import load_config
    from headway.app.config.serving import service_of, with_flags, with_keys, with_log
    from headway.app.config.written import File
    from headway.app.logs import log_to_stderr
    from headway.app.running import serve as run
    from headway.app.settings import DEFAULT
    from headway.gateway.collector import collect_seldom

    gateway = {
        "host": host,
        "port": port,
        "workers": workers,
        "allow_hosts": allow_host or None,
        "admin": admin,
        "admin_port": admin_port,
        "store": None if store is None else store.absolute(),
        "record": record,
        "keep_text": keep_text,
        "policy": policy,
    }
    bounds = {
        "body_bytes": body_bytes,
        "response_bytes": response_bytes,
        "first_byte_seconds": first_byte_seconds,
        "stall_seconds": stall_seconds,
    }
    here = (config or DEFAULT).absolute()

    def read() -> "Service":
        written = load_config(here) if config is not None or here.exists() else File()
        file = _engines(with_flags(written, gateway, bounds), upstream or [], embedded, weights)
        file = with_log(with_keys(file, keys, limits), log_format, calls=log_calls)
        return service_of(file, here.parent, os.environ)

    service = read()
    log_to_stderr(service.log)
    collect_seldom()
    broken_off = uvloop.run(run(service, _announce_to_machine if json else _announce_to_person, read))
    if broken_off is not None:
        sys.exit(128 + broken_off)  # as a shell tells it, and as it is while the command is still loading


def _engines(file: "File", upstream: list[str], embedded: int | None, weights: Path | None) -> "File":
    """Engines that the command line names are served instead of the file's."""
    from headway.app.cli.upstreams import read_upstreams
    from headway.app.config.written import Embedded
    from headway.core.errors import BadInputError

    if weights is not None and not embedded:
        raise BadInputError("--weights is for local engines, and none was asked for.", fix="Add --embedded 2.")
    if not upstream and embedded is None:
        return file
    local = (file.embedded or Embedded()).model_copy(update={"replicas": embedded}) if embedded else None
    if local is not None and weights is not None:
        local = local.model_copy(update={"weights": weights.absolute()})
    return file.model_copy(update={"replicas": read_upstreams(upstream), "embedded": local})


def _announce_to_machine(ready: "Ready") -> None:
    typer.echo(msgspec.json.encode(ready).decode())


def _announce_to_person(ready: "Ready") -> None:
    typer.echo(f"Headway serves on {ready.url}")
    typer.echo(f"  point an agent at it    export OPENAI_BASE_URL={ready.url}")
    if ready.admin is not None:
        typer.echo(f"  dashboard               {ready.admin}")
    typer.echo(f"  store                   {ready.store or 'none: recording is off'}")
    for replica in ready.replicas:
        process = "" if replica.pid is None else f"  (process {replica.pid})"
        typer.echo(f"  replica                 {replica.id}  {replica.url}{process}")
