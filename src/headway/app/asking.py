"""Running the knowledge agent where a person watches: documents with progress, steps and the answer as they come."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from headway.agents.knowledge.documents import Reading, read_documents
from headway.agents.knowledge.embed import E5Embedder, Embedder, EndpointEmbedder
from headway.agents.knowledge.index import Index, build
from headway.agents.knowledge.vectors import CachedEmbedder, default_vectors
from headway.core.errors import BadInputError, MissingExtraError, NotFoundError, UpstreamError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from headway.agents.knowledge.agent import KnowledgeAnswer

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


def built_in_embedder() -> Embedder:
    """The embedding model that is installed with the package; it remembers what it embedded.

    Raises:
        MissingExtraError: it is not installed.
    """
    return CachedEmbedder(E5Embedder(), default_vectors())


def choose_embedder(model: str | None, client: "AsyncOpenAI") -> Embedder:
    """The built-in embedding model, or ``model`` at the client's endpoint; both remember what they embedded.

    A model of the E5 family gets the prefixes that it was trained with.
    """
    if model is None:
        return built_in_embedder()
    prefixes = ("query: ", "passage: ") if "e5" in model.lower() else ("", "")
    remote = EndpointEmbedder(client, model, query_prefix=prefixes[0], passage_prefix=prefixes[1])
    return CachedEmbedder(remote, default_vectors())


async def load_index(docs: Path, choose: Callable[[], Embedder], console: Console) -> Index:
    """Read and embed documents; what could not be read is told on ``console``, and the rest goes on.

    Raises:
        HeadwayError: nothing could be read, or the embedder failed.
    """
    reading = read_documents(docs)
    for line in _complaints(reading):
        console.print(Text(line, "yellow"))
    embedder = choose()
    columns = (TextColumn("  embedding {task.fields[files]} documents"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=None, files=len(reading.documents))
        index = await build(
            reading.documents, embedder, lambda done, total: progress.update(bar, completed=done, total=total)
        )
    if isinstance(embedder, CachedEmbedder) and embedder.trouble:
        console.print(Text(f"  vectors are not kept: {embedder.trouble}", "yellow"))
    return index


def _complaints(reading: Reading) -> list[str]:
    return [visible(f"  {problem.name} {problem.what} {problem.fix}") for problem in reading.problems]


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
    """What follows an answer: whether it was cut off, and its sources, numbered as the model saw them."""
    cut = ["  (cut off at the limit of its length)"] if answer.finish_reason == "length" else []
    sources = [", ".join(filter(None, [source.document, source.place])) for source in answer.sources]
    return visible("\n".join([*cut, "Sources", *(f"  [{number}] {name}" for number, name in enumerate(sources, 1))]))


def visible(text: str) -> str:
    """``text`` without what could steer a terminal; line ends and tabs stay."""
    return "".join(mark if mark.isprintable() or mark in "\n\t" else "\N{REPLACEMENT CHARACTER}" for mark in text)
