"""Chunks for evidence: documents cut to a budget of tokens, whole where they fit. See docs/chunking.md."""

from headway.runtime.chunking.chunk import Chunk, Document, Origin, Part
from headway.runtime.chunking.files import by_file
from headway.runtime.chunking.headings import by_heading
from headway.runtime.chunking.measure import ESTIMATE, Measure
from headway.runtime.chunking.overlapping import by_tokens
from headway.runtime.chunking.stamps import Stamps
from headway.runtime.chunking.windows import by_time

__all__ = [
    "ESTIMATE",
    "Chunk",
    "Document",
    "Measure",
    "Origin",
    "Part",
    "Stamps",
    "by_file",
    "by_heading",
    "by_time",
    "by_tokens",
]
