"""An import from end to end: names to documents, documents to formats, formats to tasks with a verdict each."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from headway.core.span import Span
from headway.core.task import TaskId
from headway.trace.sources.document import Document
from headway.trace.sources.opening import Opening
from headway.trace.sources.refusals import why_not
from headway.trace.sources.registry import installed, recognise
from headway.trace.sources.skips import Skip, Skips
from headway.trace.sources.source import Piece, Source
from headway.trace.sources.verdict import Verdict, judge


class Imported(Struct, frozen=True, kw_only=True):
    """One task as a source recorded it."""

    task: TaskId
    title: str | None
    """The first words of what the user asked; unknown where the source does not say."""
    spans: tuple[Span, ...]
    verdict: Verdict


class Refused(Struct, frozen=True):
    """A document that no importer reads, and why: one sentence."""

    name: str
    why: str


class Intake:
    """One import; iterate over `tasks`, then see what was left out.

    Args:
        names: files, folders, patterns, archives; ``-`` is standard input.
        heard: told the bytes of each record as it is read.
    """

    def __init__(self, names: Sequence[str], heard: Callable[[int], None] = lambda _: None) -> None:
        self._names = names
        self._heard = heard
        self.skips = Skips()
        """What inside the documents could not be used, as it is added up."""
        self.refused: list[Refused] = []
        """Documents in no known format."""
        self.formats: dict[str, int] = {}
        """Documents read, by the title of their format."""
        self.total_bytes = 0
        """Size of the documents that are being read; grows while they are looked at."""

    @property
    def skipped(self) -> tuple[Skip, ...]:
        """What inside the documents could not be used."""
        return self.skips.all()

    def tasks(self) -> Iterator[Imported]:
        """Every task in the order of its source.

        Raises:
            NotFoundError: a name means nothing.
            BadInputError: a named file cannot be read.
        """
        with self.claimed() as claimed:
            for source, documents in claimed:
                for piece in source.read(documents, self.skips):
                    yield imported(piece, source)

    @contextmanager
    def claimed(self) -> Generator[list[tuple[Source, list[Document]]]]:
        """What is to be read, by the source that reads it; unpacked things are gone when it ends.

        Raises:
            NotFoundError: a name means nothing.
            BadInputError: a named file cannot be read.
        """
        with TemporaryDirectory(prefix="headway-") as scratch:
            opening = Opening(Path(scratch), self.skips, self._heard)
            sources = installed()
            claimed: dict[str, list[Document]] = {}
            for document in opening.documents(self._names):
                source = recognise(sources, sample := document.sample())
                if source is None:
                    self.refused.append(Refused(document.name, why_not(sample)))
                else:
                    self.total_bytes += document.size
                    self.formats[source.title] = self.formats.get(source.title, 0) + 1
                    claimed.setdefault(source.name, []).append(document)
            yield [(source, claimed[source.name]) for source in sources if source.name in claimed]


def imported(piece: Piece, source: Source) -> Imported:
    """A task with its verdict."""
    return Imported(
        task=piece.task,
        title=piece.title,
        spans=piece.spans,
        verdict=judge(piece.spans, source.title, piece.timing, piece.remarks, extent=piece.extent),
    )
