"""`headway debug`: bugs of a repository, from their reports to patches that test runs prove."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from headway.agents.debugging.case import Verdict

NOT_ALL: Final = 1
"""Exit status: not all bugs are fixed."""


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("debug")(debug)


def debug(  # noqa: PLR0913, PLR0917 - each option of the command is a parameter
    report: Annotated[list[Path] | None, typer.Option(help="A file with a bug report; repeat it.")] = None,
    repo: Annotated[Path, typer.Option(help="The repository's folder; it is never changed.")] = Path(),
    logs: Annotated[
        list[str] | None, typer.Option(help="Logs, as a pattern from the repository's folder, e.g. '*.log'; repeat it.")
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(help="Try it on a small repository that is shipped: backoff, basket, pages, rows, slots."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the patches, NAME.patch; default: they are printed.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="Base URL of the endpoint, up to /v1.", envvar="OPENAI_BASE_URL")
    ] = "http://127.0.0.1:8080/v1",
    model: Annotated[str | None, typer.Option(help="The model; default: the first that the endpoint lists.")] = None,
    python: Annotated[
        Path | None, typer.Option(help="Interpreter with pytest and what the repository needs; default: Headway's own.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="At a test that shows a bug, and at a patch that fixes it.")] = 3,
    tokens: Annotated[int, typer.Option(min=256, help="Of files or logs in one prompt.")] = 24_000,
    answer_tokens: Annotated[int, typer.Option(min=1, help="Of each of the model's answers.")] = 4096,
    test_seconds: Annotated[float, typer.Option(min=1, help="That a test run may take.")] = 120,
    test_memory: Annotated[int, typer.Option(min=64, help="MiB that a test run may take.")] = 2048,
    allow_network: Annotated[
        bool, typer.Option("--allow-network", help="Let tests use the network; without it they have none.")
    ] = False,
    max_usd: Annotated[float | None, typer.Option(help="US dollars that all bugs together may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens that all calls together may take.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds that all of it may take.")] = None,
    store: Annotated[Path | None, typer.Option(help="File for spans; default: in your data directory.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value with all verdicts and their runs.")
    ] = False,
) -> None:
    """Find and fix bugs: a test that fails, the cause, a patch, and the test runs that prove it.

    The repository is copied, and its code runs in a sandbox only. A bug counts as fixed when a test that failed passes
    and all tests that passed before still pass; exit status 1: not all are. The endpoint's key is read from
    OPENAI_API_KEY. `headway explain --last` shows where the time went.

    Example: headway debug --report bug.md --repo . --logs '*.log' --out patches
    """
    from headway.agents.debugging.agent import How
    from headway.agents.debugging.case import Fixed
    from headway.agents.debugging.sandbox import Limits
    from headway.agents.debugging.shipped import example as shipped
    from headway.app.cli.cancel import run as run_to_end
    from headway.app.debugging import Job, carry_out, in_words, write_patches
    from headway.core.config import default_store
    from headway.core.errors import UsageError
    from headway.runtime import Budget

    if (example is None) == (not report):
        raise UsageError("There is no bug to look at.", fix="Give --report, or --example; not both.")
    patterns = tuple(logs or ())
    if example is not None:
        given = shipped(example)
        repo, report, patterns = given.repo, [given.report], given.logs
    steps = Console(stderr=True, highlight=False)
    with tempfile.TemporaryDirectory(prefix="headway-debug-") as copy:
        job = Job(
            reports=tuple(report or ()),
            repo=repo,
            logs=patterns,
            copy=Path(copy).resolve(),
            base_url=base_url,
            api_key=os.environ.get("OPENAI_API_KEY") or "none",
            model=model,
            python=python,
            how=How(attempts=attempts, tokens=tokens, max_tokens=answer_tokens),
            limits=Limits(seconds=test_seconds, memory=test_memory << 20, network=allow_network),
            budget=Budget(usd=max_usd, tokens=max_tokens, seconds=max_seconds),
            store=store or default_store(),
        )
        verdicts = run_to_end(carry_out(job, steps))
    write_patches(verdicts, out)
    typer.echo(_json(verdicts) if json else in_words(verdicts, shown=out is None))
    if not all(isinstance(verdict, Fixed) for verdict in verdicts):
        raise typer.Exit(NOT_ALL)


def _json(verdicts: "tuple[Verdict, ...]") -> str:
    return msgspec.json.encode({"bugs": verdicts}).decode()
