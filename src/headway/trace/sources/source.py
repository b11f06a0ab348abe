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
    "durations",  # durations of some spans, but not when they were: laid one after the other
    "none",  # no times at all: only order, tokens and money can be told
]
"""Where a source's times come from."""


class Piece(Struct, frozen=True, kw_only=True):
    """Spans of one task. A source that meets a task's spans apart may yield several pieces of it."""

    task: TaskId
    spans: tuple[Span, ...]
    timing: Timing
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
    """Whether one task's spans may lie in several pieces, as those of an OTLP trace do."""

    def claims(self, sample: Sample) -> bool:
        """Whether the document is in this format; must be sure, since nobody else is asked after a yes."""
        ...

    def read(self, documents: Sequence[Document], skips: Skips) -> Iterator[Piece]:
        """The tasks in the documents, which are all of this import that are in this format.

        What cannot be used goes to ``skips``; bad records must never raise.
        """
        ...
