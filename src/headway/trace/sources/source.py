"""What an importer is: it recognises its format by content and yields canonical spans with what it knows of them."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from headway.core.span import Span
from headway.core.task import TaskId
from headway.trace.sources.document import Document, Sample
from headway.trace.sources.skips import Skips

Timing = Literal[
    "spans",  # start and end of each span were measured by whoever did the work
    "messages",  # only messages have times: spans lie between them, so they hold whatever else happened there
    "durations",  # durations of some spans, but not when they were: laid one after the other, all others without end
    "none",  # no times at all: only order, tokens and money can be told
]
"""Where a source's times come from."""


class Piece(Struct, frozen=True, kw_only=True):
    """All spans of one task."""

    task: TaskId
    spans: tuple[Span, ...]
    timing: Timing
    extent: float | None = None
    """Seconds from the first moment to the last on record, where ``timing`` is "none" or "durations" though that is
    known."""
    title: str | None = None
    """The first words of what the user asked, on one line; unknown where the source does not say."""
    remarks: tuple[str, ...] = ()
    """Plain sentences that the reader must know to trust the numbers: what was derived, converted or taken as given."""


class Source(Protocol):
    """One format. Registered under the entry-point group ``headway.sources``; made anew for every import."""

    name: str
    """Short and stable, e.g. ``claude-code``."""
    title: str
    """For people: ``Claude Code session``."""
    scattered: bool
    """Whether it is a `Scattered` source: one task's spans may lie anywhere in the documents."""

    def claims(self, sample: Sample) -> bool:
        """Whether the document is in this format; must be sure, since nobody else is asked after a yes."""
        ...

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """The tasks in the documents, which are all of this import that are in this format.

        What cannot be used goes to ``skips``; bad records must never raise.
        """
        ...


class Scattered(Source, Protocol):
    """A source whose documents, and the lines of one, can be read apart, each task being put together afterwards.

    To `read` is to `scan` all of it at once and to `join` each task. That holds for any division of the documents into
    parts that are scanned apart: a task's fragments are those of all parts, in the order of the parts.
    """

    def scan(self, documents: Sequence[Document], skips: Skips) -> Iterator[tuple[TaskId, list[bytes]]]:
        """What the documents hold of each task, encoded; the tasks in the order in which they were first met."""
        ...

    def join(self, task: TaskId, fragments: Sequence[bytes]) -> Piece:
        """The task that the fragments hold."""
        ...
