"""`headway demo`: the whole of Headway once, on this machine."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


REPLICAS = 2
MODEL = "embedded"


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("demo")(demo)


def demo(
    question: Annotated[
        str | None, typer.Option(help="What to ask; default: a question on the demo's documents.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="A file or folder to ask about; default: the demo's documents.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for reports and store; default: ./out, else your data directory.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the gateway running afterwards, until Ctrl-C.")] = False,
) -> None:
    """Start two replicas of a real local model and the gateway, run an agent through it twice, and explain both tasks.

    Example: headway demo

    Example: headway demo --docs ./handbook --question "Who is told about an outage?"
    """
    from headway.agents.knowledge import BUNDLED_QUESTION, bundled_documents
    from headway.agents.knowledge.documents import look_for_documents
    from headway.app.cli.cancel import run as run_to_end
    from headway.app.demo.run import Demo, run
    from headway.app.report.layout import console

    documents = docs or bundled_documents()
    look_for_documents([documents])
    folder, screen = _folder(out), console()
    weights = _weights(screen)
    work = Demo(
        question=question or BUNDLED_QUESTION,
        docs=documents,
        out=folder,
        engines=("--embedded", str(REPLICAS), "--weights", str(weights)),
        model=MODEL,
        keep=keep,
    )
    run_to_end(run(work, screen))


def _weights(screen: "Console") -> Path:
    """The local model's weights, fetched if need be with progress shown."""
    from headway.gateway.models import pull

    with screen.status("weights of the local model") as status:

        def report(stage: str, done: int, total: int) -> None:
            of = f" {done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""
            status.update(f"weights of the local model: {stage}{of}")

        path = pull(report)
    screen.print(f"Weights of the local model: {path}", highlight=False, markup=False)
    return path


def _folder(wanted: Path | None) -> Path:
    """Where results go; created. Only the default gives way to another place when it cannot be written."""
    from platformdirs import user_data_path

    from headway.core.errors import BadInputError

    for folder in [wanted] if wanted is not None else [Path("out"), user_data_path("headway") / "demo"]:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder.absolute()
    raise BadInputError(
        f"Nothing can be written to {wanted or 'the folder out here'}.", fix="Name another folder with --out."
    )
