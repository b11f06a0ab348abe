"""`headway refusal`: from which support on a question is put to the model, and what that choice costs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from headway.app.calibrating import Calibration


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("refusal")(refusal)


def refusal(
    docs: Annotated[
        list[Path] | None, typer.Option(help="Your documents; repeat it. Default: those that ship with the questions.")
    ] = None,
    questions: Annotated[
        Path | None, typer.Option(help="Questions to them, a JSON value a line; default: those that ship.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="Base URL of the endpoint for --embed-model.", envvar="OPENAI_BASE_URL")
    ] = "http://127.0.0.1:8080/v1",
    embed_model: Annotated[
        str | None, typer.Option(help="An embedding model at the endpoint; default: the built-in one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> None:
    """Measure how well search finds, and choose the support below which `headway ask` refuses. No model is asked.

    The threshold is chosen by one half of the questions and reported on the other; `headway ask --threshold` takes it.

    Example: headway refusal --docs ./handbook --questions questions.jsonl
    """
    from headway.agents.knowledge import bundled_documents
    from headway.agents.knowledge.documents import look_for_documents
    from headway.agents.knowledge.questions import bundled_questions, korean_documents, read_questions
    from headway.app.asking import choose_embedder, load_index, open_client
    from headway.app.calibrating import calibrate, render
    from headway.app.cli.cancel import run as run_to_end
    from headway.app.report.layout import console
    from headway.core.errors import BadInputError

    if (docs is None) != (questions is None):
        raise BadInputError("Questions are of certain documents.", fix="Give both --docs and --questions, or neither.")
    asked = bundled_questions() if questions is None else read_questions(questions)
    documents = docs or [bundled_documents(), korean_documents()]
    look_for_documents(documents)

    async def run() -> "Calibration":
        async with open_client(base_url, os.environ.get("OPENAI_API_KEY") or "none") as client:
            steps = Console(stderr=True)
            with await load_index(documents, lambda: choose_embedder(embed_model, client), steps) as index:
                return await calibrate(asked, index)

    done = run_to_end(run())
    if json:
        typer.echo(msgspec.json.encode(done).decode())
    else:
        console().print(render(done))
