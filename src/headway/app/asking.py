"""Running the knowledge agent where a person watches: documents with progress, steps and the answer as they come."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from headway.agents.knowledge.embed import E5Embedder, Embedder, EndpointEmbedder
from headway.agents.knowledge.retrieval.index import Index
from headway.agents.knowledge.retrieval.index_file import IndexFile
from headway.agents.knowledge.retrieval.updating import update
from headway.core.errors import BadInputError, MissingExtraError, NotFoundError, UpstreamError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from headway.agents.knowledge.agent import KnowledgeAnswer, Source

PATIENCE: Final = 300.0
"""Seconds that the client waits for a byte; small machines read long prompts slowly."""


def open_client(base_url: str, api_key: str) -> "AsyncOpenAI":
    """A plain OpenAI client; close it, for example with ``async with``.

    Raises:
        BadInputError: ``base_url`` is no http(s) URL.
        MissingExtraError: the package openai is not installed.
    """
    try:
        from openai import AsyncOpenAI  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError("The knowledge agent", "knowledge") from error
    if not base_url.startswith(("http://", "https://")):
        raise BadInputError(
            f"The base URL {base_url!r} is no http(s) URL.", fix="It looks like http://127.0.0.1:8080/v1."
        )
    return AsyncOpenAI(base_url=base_url, api_key=api_key, timeout=PATIENCE)


async def first_model(client: "AsyncOpenAI") -> str:
    """The first model that the endpoint lists.

    Raises:
        UpstreamError: it could not be asked.
        NotFoundError: it lists none.
    """
    from openai import OpenAIError  # noqa: PLC0415 - an optional package

    try:
        models = (await client.models.list()).data
    except OpenAIError as error:
        raise UpstreamError(
            f"{client.base_url} could not be asked for its models: {error}",
            fix="Check the URL and that it is running, or name a model with --model.",
        ) from error
    if not models:
        raise NotFoundError(f"{client.base_url} lists no model.", fix="Name one with --model.")
    return models[0].id


def choose_embedder(model: str | None, client: "AsyncOpenAI") -> Embedder:
    """The built-in embedding model, or ``model`` at the client's endpoint.

    A model of the E5 family gets the prefixes that it was trained with.

    Raises:
        MissingExtraError: the built-in one is wanted, and not installed.
    """
    if model is None:
        return E5Embedder()
    prefixes = ("query: ", "passage: ") if "e5" in model.lower() else ("", "")
    return EndpointEmbedder(client, model, query_prefix=prefixes[0], passage_prefix=prefixes[1])


def index_of(docs: Sequence[Path], embedder: str) -> Path:
    """Where an index is kept unless told otherwise: in the user's cache directory, one for each choice of documents."""
    chosen = "\0".join([embedder, *sorted(str(path.resolve()) for path in docs)])
    return user_cache_path("headway") / "indexes" / f"{hashlib.sha256(chosen.encode()).hexdigest()[:16]}.db"


async def load_index(
    docs: Sequence[Path], choose: Callable[[], Embedder], console: Console, where: Path | None = None
) -> Index:
    """Bring the index of documents up to date and open it; what could not be read is told on ``console``. Close it.

    Args:
        docs: files and folders.
        choose: gives the embedder; asked for it once there is something to embed.
        console: for progress and complaints.
        where: the index; ``None``: `index_of`.

    Raises:
        HeadwayError: nothing could be read, the index cannot be written, or the embedder failed.
    """
    embedder = choose()
    file = IndexFile(where or index_of(docs, embedder.name))
    try:
        columns = (TextColumn("  embedding passages"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task("", total=None)
            done = await update(
                file, docs, embedder, lambda now, total: progress.update(bar, completed=now, total=total)
            )
        for problem in done.problems:
            console.print(Text(visible(f"  {problem.name} {problem.what} {problem.fix}"), "yellow"), soft_wrap=True)
        return Index(file, embedder)
    except BaseException:
        file.close()
        raise


class Teller:
    """Prints steps and the answer as they come, each on its own console, one below the other.

    While nothing comes, a terminal shows how long a step has been going on.
    """

    def __init__(self, steps: Console, answer: Console | None) -> None:
        self._steps = steps
        self._answer = answer
        self._mid_line = False
        self._waiting: Progress | None = None

    def step(self, words: str) -> None:
        """A step begins."""
        self.end()
        self._steps.print(Text(visible(f"  · {words}"), "dim"))
        if self._steps.is_terminal:
            self._waiting = Progress(TextColumn("   "), TimeElapsedColumn(), console=self._steps, transient=True)
            self._waiting.add_task("")
            self._waiting.start()

    def text(self, piece: str) -> None:
        """A piece of the answer."""
        self._stop_waiting()
        if self._answer is not None:
            self._answer.out(visible(piece), end="", highlight=False)
            self._answer.file.flush()
            self._mid_line = True

    def end(self) -> None:
        """The answer is at its end, or broke off: whatever is printed next begins a line."""
        self._stop_waiting()
        if self._mid_line and self._answer is not None:
            self._answer.print()
        self._mid_line = False

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None


def closing(answer: "KnowledgeAnswer") -> str:
    """What follows an answer: why there is none, or whether it was cut off; what proves it; its sources, by number."""
    lines = ["  (cut off at the limit of its length)"] if answer.finish_reason == "length" else []
    if answer.refused is not None:
        lines.append(f"The documents do not hold the answer: {answer.refused.why}.")
    elif answer.quotes:
        lines.append("Quotes, each found in the documents")
    else:
        lines.append("No quote proves this answer, so it may be wrong.")
    lines += [f'  [{quote.source}] "{quote.text}" ({_at(quote.document, quote.place)})' for quote in answer.quotes]
    lines += [f'  dropped: "{quote.text}": {quote.why}' for quote in answer.dropped]
    lines.append("What came nearest" if answer.refused is not None else "Sources")
    lines += [f"  [{source.number}] {_named(source)}" for source in _listed(answer)]
    return visible("\n".join(lines))


def _listed(answer: "KnowledgeAnswer") -> "list[Source]":
    """All sources; of all documents, which stand there whole, only those that are quoted."""
    quoted = {quote.source for quote in answer.quotes}
    return [source for source in answer.sources if answer.mode != "cag" or source.number in quoted]


def _named(source: "Source") -> str:
    also = f" (also in {', '.join(source.also_in)})" if source.also_in else ""
    return _at(source.document, source.place) + also


def _at(document: str, place: str) -> str:
    return ", ".join(filter(None, [document, place]))


def visible(text: str) -> str:
    """``text`` without what could steer a terminal; line ends and tabs stay."""
    return "".join(mark if mark.isprintable() or mark in "\n\t" else "\N{REPLACEMENT CHARACTER}" for mark in text)
