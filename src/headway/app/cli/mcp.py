"""`headway mcp`: Headway as tools of an agent."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("mcp")(mcp)


def mcp(
    port: Annotated[
        int | None,
        typer.Option(
            help="Serve over streamable HTTP on 127.0.0.1 at this port (0: a free one), not standard input and output.",
            min=0,
            max=65535,
        ),
    ] = None,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Over HTTP too, let callers name trace files for it to read; over stdio they always may."
        ),
    ] = False,
    store: Annotated[
        Path | None, typer.Option(help="The store of spans; default: where `headway serve` puts it.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Own prices; default: headway.toml here.")] = None,
) -> None:
    """Be an MCP server, so that an agent can ask for tasks, explain them, why calls went where they did, and what-ifs.

    Claude Code, Codex and others start it themselves: see docs/mcp.md.

    [bold]Examples[/]

    claude mcp add headway -- headway mcp

    headway mcp --port 8090
    """
    from headway.app.cli.cancel import run
    from headway.app.settings import load
    from headway.core.config import default_store
    from headway.core.errors import MissingExtraError

    try:
        from headway.app.mcp.serving import over_http, over_stdio
    except ModuleNotFoundError as error:
        raise MissingExtraError("An MCP server", "mcp") from error
    from headway.app.mcp.answers import Sources

    prices = load(config).prices
    if port is None:
        if sys.stdin is not None and sys.stdin.isatty():
            typer.echo("Waiting for an agent's requests, a line of JSON each. Ctrl-C ends this; see --help.", err=True)
        run(over_stdio(Sources(store=store or default_store(), prices=prices, files=True)))
    else:
        sources = Sources(store=store or default_store(), prices=prices, files=files)
        run(over_http(sources, port, lambda url: typer.echo(f"MCP server: {url}")))
