"""Answers questions from documents, with sources."""

from pathlib import Path
from typing import Final

BUNDLED_QUESTION: Final = "Why did the depots stop printing labels on 12 April?"
"""A question that the bundled documents answer."""


def bundled_documents() -> Path:
    """The documents that ship with the package: the handbook of an invented parcel carrier, written for the purpose."""
    return Path(__file__).parent / "corpus"
