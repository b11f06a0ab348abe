"""`headway ask`: a question to your documents, through any OpenAI-compatible endpoint."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from headway.agents.knowledge.agent import KnowledgeAnswer

REFUSED: Final = 3
"""Exit status: the documents do not hold the answer."""
UNPROVEN: Final = 4
"""Exit status: there is an answer, and no quote proves it."""


class Mode(StrEnum):
    """How the agent goes about it."""

    DIRECT = "direct"
    PLANNING = "planning"
    CAG = "cag"
    TOOLS = "tools"


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("ask")(ask)


def ask(  # noqa: PLR0913, PLR0915, PLR0917 - each option of the command is a parameter, and each import a statement
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    docs: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file or folder of PDF, DOCX, HTML, Markdown, text; repeat it. Default: the demo's documents."
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Where to keep their index; default: in your cache directory.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="Base URL of the endpoint, up to /v1.", envvar="OPENAI_BASE_URL")
    ] = "http://127.0.0.1:8080/v1",
    model: Annotated[str | None, typer.Option(help="The model; default: the first that the endpoint lists.")] = None,
    mode: Annotated[
        Mode,
        typer.Option(help="One call; a plan by the model; all documents in the prompt; a model that searches."),
    ] = Mode.DIRECT,
    embed_model: Annotated[
        str | None, typer.Option(help="An embedding model at the endpoint; default: the built-in one.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Support that an answer needs, see `headway refusal`; 0: always ask. Default: calibrated."),
    ] = None,
    max_usd: Annotated[float | None, typer.Option(help="US dollars that the answer may cost.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens that all calls together may take.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Seconds that the answer may take.")] = None,
    store: Annotated[Path | None, typer.Option(help="File for spans; default: in your data directory.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value with answer, quotes, sources, plan and calls.")
    ] = False,
) -> None:
    """Answer a question from documents, with quotes that are looked up in them.

    The answer is printed while it is written, then what proves it. Exit status 3: the documents do not hold the answer;
    4: there is an answer, and no quote proves it. The endpoint's key is read from OPENAI_API_KEY.
    `headway explain --last` shows where the time went.

    Example: headway ask "Who is told about an outage?" --docs ./handbook --docs faq.pdf --mode planning
    """
    from headway.agents.knowledge import bundled_documents
    from headway.agents.knowledge.as_task import answering
    from headway.agents.knowledge.documents import look_for_documents
    from headway.agents.knowledge.support import THRESHOLDS
    from headway.app.asking import Teller, choose_embedder, closing, first_model, load_index, open_client
    from headway.app.cli.cancel import run as run_to_end
    from headway.core.config import default_store
    from headway.runtime import Budget, Models, Runtime

    documents = docs or [bundled_documents()]
    look_for_documents(documents)
    budget = Budget(usd=max_usd, tokens=max_tokens, seconds=max_seconds)
    steps, out = Console(stderr=True), Console()
    teller = Teller(steps, None if json else out)
    key = os.environ.get("OPENAI_API_KEY") or "none"

    async def run() -> "KnowledgeAnswer":
        async with open_client(base_url, key) as client, Models(base_url, api_key=key) as models:
            chosen = model or await first_model(client)
            with await load_index(documents, lambda: choose_embedder(embed_model, client), steps, index) as opened:
                needed = THRESHOLDS.get(opened.embedder) if threshold is None else threshold
                if needed is None:
                    steps.print(f"  No threshold is known for {opened.embedder}, so the model is asked in any case.")
                task = answering(
                    opened,
                    chosen,
                    budget=budget,
                    on_text=teller.text,
                    on_step=teller.step,
                    mode=mode.value,
                    threshold=needed,
                )
                try:
                    async with Runtime(store=store or default_store(), models=models) as runtime:
                        return await runtime.start(task, question)
                finally:
                    teller.end()

    answer = run_to_end(run())
    typer.echo(_json(answer) if json else f"\n{closing(answer)}")
    if answer.refused is not None:
        raise typer.Exit(REFUSED)
    if not answer.grounded:
        raise typer.Exit(UNPROVEN)


def _json(answer: "KnowledgeAnswer") -> str:
    more = {"grounded": answer.grounded, "usage": msgspec.to_builtins(answer.usage)}
    return msgspec.json.encode(msgspec.to_builtins(answer) | more).decode()
