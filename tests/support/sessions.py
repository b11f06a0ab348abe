"""What tests of imported sessions look at: a piece's spans by kind, times from its start, and no damage that raises."""

from collections.abc import Callable, Sequence

import msgspec
from hypothesis import given, settings
from importing import damaged, document

from headway.core.span import HumanWait, ModelCall, Span, Step, ToolUse
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece, Source


def lines(rows: Sequence[object]) -> bytes:
    """JSON lines."""
    return b"\n".join(map(msgspec.json.encode, rows)) + b"\n"


def calls(piece: Piece) -> list[ModelCall]:
    """Its model calls."""
    return [span.work for span in piece.spans if isinstance(span.work, ModelCall)]


def chats(piece: Piece) -> list[Span]:
    """The spans of its model calls."""
    return [span for span in piece.spans if isinstance(span.work, ModelCall)]


def tools(piece: Piece) -> list[Span]:
    """The spans of its tools."""
    return [span for span in piece.spans if isinstance(span.work, ToolUse)]


def waits(piece: Piece) -> list[Span]:
    """The spans in which a person was waited for."""
    return [span for span in piece.spans if isinstance(span.work, HumanWait)]


def agents(piece: Piece) -> list[Span]:
    """The spans of sub-agents."""
    return [span for span in piece.spans if isinstance(span.work, Step) and span.parent is not None]


def at(span: Span, piece: Piece) -> tuple[float, float | None]:
    """Start and end in seconds from the task's start, to the millisecond."""
    start = piece.spans[0].start
    return round(span.start - start, 3), None if span.end is None else round(span.end - start, 3)


def reasons(skips: Skips) -> dict[str, int]:
    """How often each was the reason."""
    return {skip.reason: skip.count for skip in skips.all()}


def assert_unharmed(source: Callable[[], Source], originals: Sequence[bytes], examples: int = 100) -> None:
    """No damage to the documents makes the source raise, and what it yields can be written down."""

    @settings(max_examples=examples, deadline=None, database=None)
    @given(damaged(originals))
    def check(data: bytes) -> None:
        found = document(data)
        source().claims(found.sample())
        for piece in source().read([found], Skips()):
            msgspec.json.encode(piece)

    check()
