"""Patches as a model writes them: pieces of text that stand for others, checked before anything is made of them."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct

from headway.agents.debugging.repository import Repository
from headway.core.errors import BadInputError

_MOST_EDITS: Final = 20
_MOST_BYTES: Final = 64 << 10
_SETTINGS: Final = frozenset(
    {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg"}
    | {"pyproject.toml", "sitecustomize.py", "usercustomize.py"}
)
"""Files that say how tests run: who may change them can make any test pass."""


class Edit(Struct, frozen=True):
    """A change to one file. An empty ``search`` means: the whole file is ``replace``, new or not."""

    path: str
    replace: str
    search: str = ""


class Edits(Struct, frozen=True):
    """A model's fix."""

    explanation: str
    edits: list[Edit]


def is_test(path: str) -> bool:
    """Whether a file is a test, belongs to tests, or says how they run."""
    pure = PurePosixPath(path)
    name = pure.name.lower()
    return (
        name in _SETTINGS
        or (name.startswith("test_") and name.endswith(".py"))
        or name.endswith(("_test.py", ".pth"))
        or not {"tests", "test", "testing"}.isdisjoint(part.lower() for part in pure.parts[:-1])
    )


def applied(repository: Repository, edits: Sequence[Edit]) -> dict[str, str]:
    """The changed files by their path, as they are then.

    Raises:
        BadInputError: an edit leads out of the repository, touches tests or how they run, a file that is not text, or
            text that does not stand there exactly once; nothing is changed; or there is too much of it.
    """
    if not 1 <= len(edits) <= _MOST_EDITS:
        raise BadInputError(f"There are {len(edits)} edits; give 1 to {_MOST_EDITS}.")
    if (size := sum(len(edit.replace.encode(errors="replace")) for edit in edits)) > _MOST_BYTES:
        raise BadInputError(f"The edits have {size} bytes; give at most {_MOST_BYTES}.")
    changed: dict[str, str] = {}
    for edit in edits:
        path = _inside(edit.path)
        if is_test(path):
            raise BadInputError(f"{path} is a test or says how tests run, and may not be changed.")
        if path in repository.others:
            raise BadInputError(f"{path} is not a text that can be edited.")
        _fits(path, repository)
        changed[path] = _edited(path, changed.get(path, repository.texts.get(path)), edit)
    really = {path: text for path, text in changed.items() if text != repository.texts.get(path)}
    if not really:
        raise BadInputError("The edits change nothing.")
    return really


def diff(repository: Repository, changed: Mapping[str, str]) -> str:
    """A patch as ``git apply`` and ``patch -p1`` take it."""
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for path in sorted(changed)
        for line in _file_diff(path, repository.texts.get(path), changed[path])
    )


def _file_diff(path: str, before: str | None, after: str) -> list[str]:
    old = "/dev/null" if before is None else f"a/{path}"
    lines = difflib.unified_diff(_lines(before or ""), _lines(after), old, f"b/{path}")
    new = ["new file mode 100644\n"] if before is None else []
    return [f"diff --git a/{path} b/{path}\n", *new, *lines]


def _lines(text: str) -> list[str]:
    """Only line feeds end lines, as in patches; ``splitlines`` knows others."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    strange = any(not mark.isprintable() for mark in path) or "\\" in path or '"' in path
    if not path or pure.is_absolute() or ".." in pure.parts or pure == PurePosixPath() or strange:
        raise BadInputError(f"{path!r} is no path inside the repository.")
    if pure.parts[0] == ".git":
        raise BadInputError(f"{path!r} is not a part of the repository's text.")
    return str(pure)


def _fits(path: str, repository: Repository) -> None:
    """Refuse a new file where a folder is, or below a file."""
    files = repository.texts.keys() | repository.others
    if any(str(parent) in files for parent in PurePosixPath(path).parents):
        raise BadInputError(f"{path} would be below a file.")
    if any(file.startswith(f"{path}/") for file in files):
        raise BadInputError(f"{path} is a folder.")


def _edited(path: str, before: str | None, edit: Edit) -> str:
    if not edit.search:
        return edit.replace
    if before is None:
        raise BadInputError(f"There is no file {path} to search in.")
    search, replace = edit.search, edit.replace
    if "\r\n" in before and search not in before:  # models write line feeds alone
        search, replace = search.replace("\n", "\r\n"), replace.replace("\n", "\r\n")
    if (count := before.count(search)) != 1:
        raise BadInputError(f"In {path} the text to search for stands {count} times; it has to stand there once.")
    return before.replace(search, replace)
