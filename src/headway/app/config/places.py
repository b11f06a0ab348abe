"""Which line of a TOML text sets a key. The standard library reads TOML but forgets where it stood.

The text is known to be valid TOML; only statements are told apart here, and values are skipped.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import Final

Key = tuple[str | int, ...]
"""Where a value is: names of tables and keys, and the index of a table in an array of tables."""

_NAME: Final = r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'"""
_DOTTED: Final = re.compile(rf"[ \t]*(?:{_NAME})(?:[ \t]*\.[ \t]*(?:{_NAME}))*[ \t]*")
_PIECE: Final = re.compile(_NAME)
_SKIPPED: Final = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""{1,3}|\'\'\'.*?\'\'\'{1,3}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[{]|[\]}]|\n''',
    re.DOTALL,
)
"""What may hide a bracket or a line's end, and these themselves."""


class Places:
    """The lines of one text.

    Args:
        text: valid TOML.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Key, int] = {}
        counts: dict[Key, int] = {}
        table: Key = ()
        for line, statement in _statements(text):
            if statement.startswith("[["):
                path = _resolved(pieces(statement[2:]), counts)
                counts[path] = counts.get(path, -1) + 1
                table = (*path, counts[path])
                self._put(table, line)
            elif statement.startswith("["):
                table = _resolved(pieces(statement[1:]), counts)
                self._put(table, line)
            else:
                self._put((*table, *pieces(statement)), line)

    def _put(self, key: Key, line: int) -> None:
        """Of what is set in several places, the first; a table without a header begins at its first key."""
        for end in range(len(key), 0, -1):
            self._lines.setdefault(key[:end], line)

    def line(self, key: Key) -> int | None:
        """The line, from 1, of the statement that sets ``key`` or, where there is none, of what it is within."""
        for end in range(len(key), 0, -1):
            line = self._lines.get(key[:end])
            if line is not None:
                return line
        return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the line on which it begins; comments and blank lines left out."""
    start, depth = 0, 0
    text += "\n"
    for match in _SKIPPED.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        elif mark == "\n" and depth == 0:
            statement = text[start : match.start()].strip()
            if statement and not statement.startswith("#"):
                first = start + len(text[start:]) - len(text[start:].lstrip())
                yield text.count("\n", 0, first) + 1, statement
            start = match.end()


def pieces(text: str) -> tuple[str, ...]:
    """The names of a dotted key at the beginning of ``text``."""
    dotted = _DOTTED.match(text)
    if dotted is None:
        return ()
    return tuple(_plain(piece) for piece in _PIECE.findall(dotted[0]))


def _plain(name: str) -> str:
    if name[0] in "\"'":
        return str(tomllib.loads(f"name = {name}")["name"])
    return name


def _resolved(names: tuple[str, ...], counts: dict[Key, int]) -> Key:
    """The path of a table's header: a name on its way that is an array of tables means that array's last table."""
    path: Key = ()
    for name in names[:-1]:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    return (*path, *names[-1:])
