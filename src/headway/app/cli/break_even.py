"""`headway break-even`: whether to search documents or to keep all of them in the engine's prefix cache."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from headway.core.span import ModelCall
from headway.core.usage import Usage

if TYPE_CHECKING:
    from headway.agents.knowledge.break_even import Asked, Comparison, Ways


def register(app: typer.Typer) -> None:
    """Add the command to the `headway` command."""
    app.command("break-even")(break_even)


def break_even(
    questions: Annotated[list[str], typer.Argument(help="Two or more questions to the documents.")],
    docs: Annotated[
        list[Path] | None, typer.Option(help="A file or folder; repeat it. Default: the demo's documents.")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="Base URL of the endpoint, up to /v1.", envvar="OPENAI_BASE_URL")
    ] = "http://127.0.0.1:8080/v1",
    model: Annotated[str | None, typer.Option(help="The model; default: the first that the endpoint lists.")] = None,
    embed_model: Annotated[
        str | None, typer.Option(help="An embedding model at the endpoint; default: the built-in one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> None:
    """Ask each question twice, by searching and with all documents in the prompt, and say from how many on that pays.

    All documents are read anew for the first question; the later ones show what the engine's cache saves.

    Example: headway break-even "Who is told?" "What is logged?" --docs ./handbook
    """
    from headway.agents.knowledge import bundled_documents
    from headway.agents.knowledge.break_even import compare
    from headway.agents.knowledge.documents import look_for_documents
    from headway.agents.knowledge.plain_model import PlainModel
    from headway.app.asking import Teller, choose_embedder, first_model, load_index, open_client
    from headway.app.cli.cancel import run as run_to_end
    from headway.app.report.layout import console

    documents = docs or [bundled_documents()]
    look_for_documents(documents)
    steps = Console(stderr=True)
    teller = Teller(steps, None)

    async def run() -> "tuple[str, Comparison]":
        async with open_client(base_url, os.environ.get("OPENAI_API_KEY") or "none") as client:
            chosen = model or await first_model(client)
            with await load_index(documents, lambda: choose_embedder(embed_model, client), steps) as index:
                try:
                    asked = PlainModel(client, chosen)
                    return chosen, await compare(questions, index, asked, f"{time.time_ns():x}", teller.step)
                finally:
                    teller.end()

    chosen, done = run_to_end(run())
    costs = done.costs(lambda usage: _price(chosen, usage))
    if json:
        typer.echo(_json(done, costs))
        return
    console().print(_table(done))
    rate = done.prefill_rate
    typer.echo(
        f"\nThe engine read {rate:,.0f} tokens a second." if rate else "\nHow fast the engine reads is not known."
    )
    typer.echo(_verdict("In time", done.seconds, 1.0, "s"))
    typer.echo(
        "In money: not known, the model has no known price."
        if costs is None
        else _verdict("In money", costs, 1e6, "USD")
    )


def _price(model: str, usage: Usage) -> int | None:
    from headway.core.money import cost
    from headway.trace.prices import with_own

    price = with_own({})(ModelCall(model=model, usage=usage), time.time())
    return None if price is None else cost(usage, price)


def _table(done: "Comparison") -> Table:
    table = Table("", "until the answer begins", "tokens read", "of them cached", box=None)
    for name, asked in (("searched", done.searched), ("all documents", done.cached)):
        for number, one in enumerate(asked, 1):
            table.add_row(f"{name}, question {number}", *_cells(one))
    return table


def _cells(one: "Asked") -> tuple[str, str, str]:
    counts = (one.usage.input_tokens, one.usage.cache_read)
    read, cached = ("unknown" if count is None else f"{count:,}" for count in counts)
    return f"{one.seconds:.2f} s", read, cached


def _verdict(what: str, ways: "Ways", scale: float, unit: str) -> str:
    from headway.agents.knowledge.break_even import break_even as reckon

    even = reckon(ways)
    reckoned = (
        f"{ways.first / scale:.4g} {unit} for the first question and {ways.later / scale:.4g} for each later one "
        f"against {ways.searched / scale:.4g} for each that is searched"
    )
    end = "searching stays better" if even is None else f"all documents in the prompt pay from {even:,} questions on"
    return f"{what}: {reckoned}: {end}."


def _json(done: "Comparison", costs: "Ways | None") -> str:
    from headway.agents.knowledge.break_even import break_even as reckon

    value = msgspec.to_builtins(done) | {
        "prefill_rate": done.prefill_rate,
        "seconds": msgspec.to_builtins(done.seconds),
        "questions_seconds": reckon(done.seconds),
        "micro_usd": msgspec.to_builtins(costs),
        "questions_money": None if costs is None else reckon(costs),
    }
    return msgspec.json.encode(value).decode()
