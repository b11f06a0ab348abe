"""Formats by content: which installed source reads a document, or why none does."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from typing import Final, cast

from headway.core.errors import BadInputError
from headway.trace.sources.document import Sample
from headway.trace.sources.source import Source

GROUP: Final = "headway.sources"


def installed() -> tuple[Source, ...]:
    """One new importer of every installed format, by name.

    Raises:
        BadInputError: an installed plug-in cannot be loaded.
    """
    return tuple(made(name) for name in sorted(_entries().names))


def made(name: str) -> Source:
    """A new importer of one installed format.

    Raises:
        BadInputError: it cannot be loaded.
    """
    (entry, *_) = _entries().select(name=name)
    try:
        return cast("Source", entry.load()())
    except Exception as error:  # the code of a plug-in may fail in any way, and its name is what the reader needs
        raise BadInputError(
            f"The importer {name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}.",
            fix="Repair or uninstall the package that registers it.",
        ) from error


@cache
def _entries() -> EntryPoints:
    """Found once: each time, the metadata of all that is installed would be read."""
    return entry_points(group=GROUP)


def recognise(sources: Sequence[Source], sample: Sample) -> Source | None:
    """The source that knows this format."""
    return next((source for source in sources if source.claims(sample)), None)
