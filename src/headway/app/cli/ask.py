"""`headway ask`: a question to your documents, through any OpenAI-compatible endpoint."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console

if TYPE_CHECKING:
    from headway.agents.knowledge.agent import KnowledgeAnswer


class Mode(StrEnum):
    """How the agent goes about it."""

    DIRECT = "direct"
    PLANNING = "planning"


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("ask")(ask)


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    docs: Annotated[
        Path | None, typer.Option(help="A file or folder of PDF, HTML, Markdown, text; default: the demo's documents.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="Base URL of the endpoint, up to /v1.", envvar="OPENAI_BASE_URL")
    ] = "http://127.0.0.1:8080/v1",
    model: Annotated[str | None, typer.Option(help="The model; default: the first that the endpoint lists.")] = None,
    mode: Annotated[Mode, typer.Option(help="One call, or a plan written by the model.")] = Mode.DIRECT,
    embed_model: Annotated[
        str | None, typer.Option(help="An embedding model at the endpoint; default: the built-in one.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON value with answer, sources, plan and calls.")
    ] = False,
) -> None:
    """Answer a question from documents; the answer is printed while it is written, then its sources.

    The endpoint's key is read from OPENAI_API_KEY.

    Example: headway ask "Who is told about an outage?" --docs ./handbook --mode planning
    """
    from headway.agents.knowledge import bundled_documents
    from headway.agents.knowledge.agent import ask as ask_agent
    from headway.agents.knowledge.documents import look_for_documents
    from headway.app.asking import Teller, choose_embedder, closing, first_model, load_index, open_client
    from headway.app.cli.cancel import run as run_to_end

    documents = docs or bundled_documents()
    look_for_documents(documents)
    steps, out = Console(stderr=True), Console()
    teller = Teller(steps, None if json else out)

    async def run() -> "KnowledgeAnswer":
        async with open_client(base_url, os.environ.get("OPENAI_API_KEY") or "none") as client:
            chosen = model or await first_model(client)
            index = await load_index(documents, lambda: choose_embedder(embed_model, client), steps)
            try:
                return await ask_agent(
                    question, index, client, chosen, on_text=teller.text, on_step=teller.step, mode=mode.value
                )
            finally:
                teller.end()

    answer = run_to_end(run())
    if json:
        typer.echo(_json(answer))
        return
    typer.echo(f"\n{closing(answer)}")


def _json(answer: "KnowledgeAnswer") -> str:
    return msgspec.json.encode(msgspec.to_builtins(answer) | {"usage": msgspec.to_builtins(answer.usage)}).decode()
