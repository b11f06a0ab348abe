"""Observations as Langfuse exports them, and what becomes of them."""

import json

from importing import document, read

from headway.core.span import Span
from headway.trace.sources.langfuse.export import Langfuse
from headway.trace.sources.source import Piece

TRACE = "0af7651916cd43dd8448eb211c80319c"


def observation(**fields: object) -> dict[str, object]:
    """A call of four seconds, as a row."""
    return {
        "id": "00f067aa0ba902b7",
        "traceId": TRACE,
        "type": "GENERATION",
        "name": "answer",
        "startTime": "2026-01-05T10:00:00.000Z",
        "endTime": "2026-01-05T10:00:04.000Z",
        "model": "gpt-5",
        "level": "DEFAULT",
        "parentObservationId": None,
        **fields,
    }


def one(value: object) -> Piece:
    """The one task of an export from which nothing is left out."""
    pieces, skips = read(Langfuse(), document(json.dumps(value).encode()))
    assert not skips.all()
    (piece,) = pieces
    return piece


def call_of(**fields: object) -> tuple[Span, Piece]:
    """The one span of a task with one row, and the task."""
    piece = one([observation(**fields)])
    (span,) = piece.spans
    return span, piece
