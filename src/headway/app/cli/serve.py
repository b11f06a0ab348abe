"""`headway serve`: the gateway, in front of engines of your own or local ones, until it is told to stop."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from headway.app.service import Embedded, Ready
    from headway.core.config import Limits

_UPSTREAM = (
    "An engine or provider that speaks OpenAI's API: URL[,model=NAME]…[,key-env=VARIABLE][,id=NAME]. May be repeated. "
    "Without model=, one upstream gets every model name; several are asked what they serve."
)


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("serve")(serve)


def serve(  # noqa: PLR0913 - each option of the command is a parameter
    *,
    upstream: Annotated[list[str] | None, typer.Option(help=_UPSTREAM, metavar="URL")] = None,
    embedded: Annotated[int, typer.Option(help="Start this many replicas of the local model.", min=0)] = 0,
    weights: Annotated[Path | None, typer.Option(help="GGUF file for --embedded; default: the pulled model.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0: a free one.", min=0, max=65535)] = 8080,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="On loopback, a public name it may be called by, e.g. a proxy's. May be repeated."),
    ] = None,
    admin_port: Annotated[
        int, typer.Option(help="Port of the dashboard, on 127.0.0.1 only; 0: a free one.", min=0, max=65535)
    ] = 0,
    admin: Annotated[bool, typer.Option("--admin/--no-admin", help="Serve the dashboard.")] = True,
    store: Annotated[Path | None, typer.Option(help="File for spans; default: in your data directory.")] = None,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Record spans, so that tasks can be explained.")
    ] = True,
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Record prompts and answers too.")] = False,
    policy: Annotated[str, typer.Option(help="Routing policy, by name.")] = "least-loaded",
    body_bytes: Annotated[str | None, typer.Option(help="Largest request, e.g. 32MiB.", show_default="16MiB")] = None,
    response_bytes: Annotated[
        str | None, typer.Option(help="Largest whole answer, and event of a stream.", show_default="64MiB")
    ] = None,
    first_byte_seconds: Annotated[
        str | None, typer.Option(help="What an engine may take to begin its answer.", show_default="600")
    ] = None,
    stall_seconds: Annotated[
        str | None, typer.Option(help="What it may take between two bytes of it.", show_default="120")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Configuration whose \\[gateway.limits] to take; default: headway.toml here, if there is one."
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Say on standard output, in one line of JSON, when all is ready.")
    ] = False,
) -> None:
    """Serve an OpenAI-compatible endpoint that sees, records and routes every call.

    Runs until SIGTERM or Ctrl-C, then lets calls under way end for up to 30 s; a second signal stops it at once.

    Example: headway serve --upstream http://127.0.0.1:8000/v1

    Example: headway serve --embedded 2
    """
    import uvloop

    from headway.app.cli.logs import log_to_stderr
    from headway.app.cli.upstreams import read_upstreams
    from headway.app.service import Service
    from headway.app.service import serve as run
    from headway.core.config import default_store

    service = Service(
        upstreams=read_upstreams(upstream or (), os.environ),
        embedded=_embedded(embedded, weights),
        host=host,
        port=port,
        allow_hosts=tuple(allow_host or ()),
        admin_port=admin_port if admin else None,
        store=(store or default_store()) if record else None,
        keep_text=keep_text,
        policy=policy,
        limits=_limits(
            config,
            body_bytes=body_bytes,
            response_bytes=response_bytes,
            first_byte_seconds=first_byte_seconds,
            stall_seconds=stall_seconds,
        ),
    )
    log_to_stderr()
    uvloop.run(run(service, _announce_to_machine if json else _announce_to_person))


def _embedded(count: int, weights: Path | None) -> "Embedded | None":
    from headway.app.service import Embedded
    from headway.core.errors import BadInputError
    from headway.gateway.engines import EngineSpec
    from headway.gateway.models import find

    if count:
        return Embedded(spec=EngineSpec(weights=find(weights)), count=count)
    if weights is not None:
        raise BadInputError("--weights is for local engines, and none was asked for.", fix="Add --embedded 2.")
    return None


def _limits(config: Path | None, **flags: str | None) -> "Limits":
    from headway.app.config.limits import limits_of
    from headway.app.config.reading import load_config
    from headway.app.config.written import File
    from headway.app.settings import DEFAULT

    found = config or (DEFAULT if DEFAULT.exists() else None)
    return limits_of((File() if found is None else load_config(found)).gateway.limits, flags)


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
