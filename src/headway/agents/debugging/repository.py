"""A repository as it was when the work began: a copy in a folder of its own, and the texts that a model may read."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from headway.core.errors import BadInputError, NotFoundError
from headway.runtime.chunking import Document

_LEFT_OUT: Final = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".mypy_cache"}
    | {".pytest_cache", ".ruff_cache", ".ssh", ".aws", ".env", ".netrc", ".pypirc"}
)
"""What a copy goes without: it is no part of the repository, large, or secret."""
_MOST_BYTES: Final = 256 << 20
_MOST_FILES: Final = 50_000
_READABLE: Final = 256 << 10
"""Bytes of the longest file that a model is given."""
_MOST_LOG: Final = 16 << 20


class Repository(Struct, frozen=True):
    """A copy that nobody changes."""

    copy: Path
    texts: dict[str, str]
    """Its text files by their path; neither binary files nor very long ones."""
    others: frozenset[str]
    """Its other files."""


def take_copy(source: Path, into: Path) -> Repository:
    """Copy a repository; links that lead out of it, and what is no file, are left out.

    Raises:
        NotFoundError: there is no such folder.
        BadInputError: it has too many files or bytes, one cannot be read, or it holds no text.
    """
    if not source.is_dir():
        raise NotFoundError(f"{source} is no folder.", fix="Give the repository's folder with --repo.")
    texts: dict[str, str] = {}
    others: set[str] = set()
    total = 0
    for at, path in enumerate(_files(source)):
        name = path.relative_to(source).as_posix()
        try:
            total += path.stat().st_size
            if total > _MOST_BYTES or at >= _MOST_FILES:
                raise BadInputError(
                    f"{source} has more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES} files.",
                    fix="Give the folder of the part that the bug is in.",
                )
            place = into / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
            text = _text(place)
        except OSError as error:
            raise BadInputError(f"{path} cannot be copied: {error.strerror}.", fix="Make it readable.") from error
        if text is None:
            others.add(name)
        else:
            texts[name] = text
    if not texts:
        raise BadInputError(f"{source} holds no text file.", fix="Give the repository's folder with --repo.")
    return Repository(into, texts, frozenset(others))


def read_logs(source: Path, patterns: Sequence[str]) -> tuple[Document, ...]:
    """The logs that patterns name; of a very long one, its end.

    Args:
        source: the repository's folder, which relative patterns start from.
        patterns: as in a shell, ``**`` among them.

    Raises:
        NotFoundError: a pattern names none.
        BadInputError: one cannot be read.
    """
    found: dict[str, Document] = {}
    for pattern in patterns:
        anchor = Path(Path(pattern).anchor or source)
        names = sorted(path for path in anchor.glob(pattern.lstrip("/")) if path.is_file())
        if not names:
            raise NotFoundError(f"No log is called {pattern!r}.", fix=f"Patterns start from {source}.")
        for path in names:
            try:
                with path.open("rb") as file:
                    file.seek(max(0, path.stat().st_size - _MOST_LOG))
                    text = file.read().decode(errors="replace")
            except OSError as error:
                raise BadInputError(f"{path} cannot be read: {error.strerror}.", fix="Make it readable.") from error
            name = path.relative_to(source).as_posix() if path.is_relative_to(source) else str(path)
            found[name] = Document(name, text)
    return tuple(found.values())


def _files(source: Path) -> Iterator[Path]:
    root = Path(os.path.realpath(source))
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            path = Path(folder, name)
            real = Path(os.path.realpath(path))  # `resolve` raises at a link to itself
            if not _kept(name) or not real.is_relative_to(root):
                continue
            if all(map(_kept, real.relative_to(root).parts)) and _is_file(real):
                yield path


def _kept(name: str) -> bool:
    return name not in _LEFT_OUT and not name.startswith(".env.")


def _is_file(path: Path) -> bool:
    return path.exists() and stat.S_ISREG(path.stat().st_mode)


def _text(path: Path) -> str | None:
    if path.stat().st_size > _READABLE:
        return None
    data = path.read_bytes()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
