"""Which of all real traces an importer takes for its own."""

from collections.abc import Iterable

from importing import document, sample

from headway.core.span import ModelCall, Span, ToolUse
from headway.trace.sources.source import Piece, Source


def claimed(source: Source) -> set[str]:
    """Paths under ``traces`` of the files that the importer claims; the test is skipped where there are none."""
    root = sample("traces")
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "SOURCES.md"]
    return {
        str(path.relative_to(root)) for path in files if source.claims(document(path.read_bytes(), path.name).sample())
    }


def files_of(*folders: str) -> set[str]:
    """Paths under ``traces`` of all files in some of its folders."""
    root = sample("traces")
    return {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and path.name != "SOURCES.md"
    }


def calls_of(spans: Iterable[Span]) -> list[tuple[Span, ModelCall]]:
    """Model calls by start."""
    found = [(span, span.work) for span in spans if isinstance(span.work, ModelCall)]
    return sorted(found, key=lambda pair: pair[0].start)


def tools_of(spans: Iterable[Span]) -> list[tuple[Span, ToolUse]]:
    """Tools at work by start."""
    found = [(span, span.work) for span in spans if isinstance(span.work, ToolUse)]
    return sorted(found, key=lambda pair: pair[0].start)


def length(span: Span) -> float:
    """Seconds that a finished span took, to the tenth of a millisecond."""
    assert span.end is not None
    return round(span.end - span.start, 4)


def extent(piece: Piece) -> float:
    """Seconds from the first start to the last end, to the tenth of a millisecond."""
    ends = [span.start if span.end is None else span.end for span in piece.spans]
    return round(max(ends) - min(span.start for span in piece.spans), 4)
