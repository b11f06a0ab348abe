"""Imports in tests: documents out of bytes, real samples, and damage done to them."""

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st

from headway.trace.sources.document import Document
from headway.trace.sources.intake import Imported, Intake
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece, Source

_SHARED = Path(os.environ.get("HEADWAY_SHARED", Path(__file__).parents[3] / "shared"))


def sample(name: str) -> Path:
    """A file or folder of the real data, by its path under ``data``; the test is skipped where there is none."""
    path = _SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"the real data is not on this machine: {path}")
    return path


def document(data: bytes, name: str = "made.json") -> Document:
    """A document out of bytes."""
    return Document(name, len(data), lambda: io.BytesIO(data))


def read(source: Source, *documents: Document) -> tuple[list[Piece], Skips]:
    """What one importer makes of documents, all of which it must claim."""
    assert all(source.claims(found.sample()) for found in documents)
    skips = Skips()
    return list(source.read(documents, skips)), skips


def take(*names: Path | str) -> tuple[list[Imported], Intake]:
    """A whole import by name, as ``headway explain`` does it."""
    intake = Intake([str(name) for name in names])
    return list(intake.tasks()), intake


@st.composite
def damaged(draw: st.DrawFn, originals: Sequence[bytes]) -> bytes:
    """A real document with something done to it: cut, bytes changed, a piece doubled, moved or taken out."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        length = draw(st.integers(1, 64))
        match draw(st.sampled_from(["cut", "change", "double", "drop", "digit", "null"])):
            case "cut":
                del data[at:]
            case "change":
                data[at : at + length] = draw(st.binary(max_size=length))
            case "double":
                data[at:at] = data[at : at + length]
            case "drop":
                del data[at : at + length]
            case "digit":
                _values(data, at, b"9" * draw(st.integers(1, 25)))
            case _:
                _values(data, at, draw(st.sampled_from([b"null", b"-1", b'""', b"{}", b"[]", b"1e999", b"true"])))
    return bytes(data)


def _values(data: bytearray, at: int, value: bytes) -> None:
    """Replace the JSON value after the next colon."""
    colon = data.find(b":", at)
    if colon >= 0:
        ends = [end for end in _ends(data, colon + 1) if end > 0]
        data[colon + 1 : min(ends, default=colon + 1)] = value


def _ends(data: bytearray, at: int) -> Iterator[int]:
    for mark in (b",", b"}", b"]"):
        yield data.find(mark, at)
