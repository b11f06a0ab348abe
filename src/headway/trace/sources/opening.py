"""From what a person names to documents: files, folders, patterns, standard input, gzip and zip."""

import gzip
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from headway.core.errors import BadInputError, NotFoundError
from headway.trace.sources.copies import Copies
from headway.trace.sources.document import Document
from headway.trace.sources.skips import Skips

MAX_UNPACKED: Final = 4 * 1024**3
"""Bytes that all that is packed may unpack to."""
MAX_RATIO: Final = 200
"""Times that it may grow by unpacking, once it is larger than `FREE_BYTES`; traces grow by 10 to 40."""
FREE_BYTES: Final = 64 * 1024**2
MAX_NESTING: Final = 2
"""Archives inside one another: a gzip in a zip, but no zip that contains itself."""
_BLOCK: Final = 1024**2
_STDIN: Final = "-"
_MAC: Final = "__MACOSX/"
"""What macOS adds to its archives: nobody's own files."""
_HIDDEN: Final = "a hidden file: its name or its folder's begins with a dot"


class _Readable(Protocol):
    """What gives what it has: of damaged data, all that came before the damage."""

    def read1(self, size: int, /) -> bytes: ...


class Opening:
    """Documents by name.

    Args:
        scratch: a directory of the caller's, where what is packed or can be read once only is put.
        skips: where what cannot be opened is counted.
        heard: told the bytes of each record as it is read.
    """

    def __init__(self, scratch: Path, skips: Skips, heard: Callable[[int], None] = lambda _: None) -> None:
        self._copies = Copies(scratch)
        self._skips = skips
        self._heard = heard
        self._room = MAX_UNPACKED
        self._seen: set[Path] = set()

    def documents(self, names: Sequence[str]) -> Iterator[Document]:
        """Every document under the names, each once: files, folders (all that is in them), patterns, ``-``, archives.

        Raises:
            NotFoundError: a name means nothing.
            BadInputError: a named file cannot be read. Inside a folder or an archive such a file goes to the skips.
        """
        for name in names:
            if name == _STDIN:
                yield from self._stream("stdin", cast("_Readable", sys.stdin.buffer), MAX_UNPACKED, 0)
                continue
            for path, alone in _paths(name, lambda hidden: self._skips.add(_HIDDEN, str(hidden))):
                if (real := path.resolve()) in self._seen:
                    continue
                self._seen.add(real)
                try:
                    open_ = cast("Callable[[], BinaryIO]", partial(path.open, "rb"))
                    yield from self._content(str(path), path.stat().st_size, open_, 0)
                except OSError as error:
                    if alone:
                        raise BadInputError(
                            f"{path} cannot be read: {error.strerror}.", fix="Check its permissions."
                        ) from error
                    self._skips.add(f"cannot be read: {error.strerror}", str(path))

    def _content(self, name: str, size: int, open_: Callable[[], BinaryIO], depth: int) -> Iterator[Document]:
        with open_() as file:
            start = file.read(4)
            file.seek(0)
            packed = start == b"PK\x03\x04" or start[:3] == b"\x1f\x8b\x08"
            if packed and depth == MAX_NESTING:
                self._skips.add(f"packed more than {MAX_NESTING} times over", name)
            elif start == b"PK\x03\x04":
                yield from self._members(name, file, depth + 1)
            elif start[:3] == b"\x1f\x8b\x08":
                with gzip.GzipFile(fileobj=file) as inner:
                    yield from self._stream(name, inner, _limit(size), depth + 1)
            elif size:
                yield Document(name, size, open_, self._heard)
            else:
                self._skips.add("an empty file", name)

    def _members(self, name: str, file: BinaryIO, depth: int) -> Iterator[Document]:
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    inside = f"{name}/{member.filename}"
                    if member.is_dir() or member.filename.startswith(_MAC):
                        continue
                    if _hidden(Path(member.filename)):
                        self._skips.add(_HIDDEN, inside)
                    else:
                        yield from self._member(archive, member, inside, depth)
        except zipfile.BadZipFile:
            self._skips.add("a damaged zip archive", name)

    def _member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, inside: str, depth: int) -> Iterator[Document]:
        try:
            with archive.open(member) as inner:
                yield from self._stream(inside, cast("_Readable", inner), _limit(member.compress_size), depth)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError):  # damaged; encrypted; an unknown method
            self._skips.add("a member of a zip archive that cannot be unpacked", inside)

    def _stream(self, name: str, source: _Readable, limit: int, depth: int) -> Iterator[Document]:
        """What can be read once only, as a copy of ours; more than the limit is told, and nothing of it used."""
        try:
            size, open_ = self._copies.keep(self._blocks(name, source, min(limit, self._room)))
        except _TooMuchError:
            self._skips.add("unpacks to far more than a trace would", name)
            return
        self._room -= size
        yield from self._content(name, size, open_, depth)

    def _blocks(self, name: str, source: _Readable, limit: int) -> Iterator[bytes]:
        size = 0
        try:
            while block := source.read1(_BLOCK):
                size += len(block)
                if size > limit:
                    raise _TooMuchError
                yield block
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self._skips.add("compressed data that is damaged or ends too early: read up to there", name)


class _TooMuchError(Exception):
    """Something unpacks to more than its limit."""


def _limit(packed: int) -> int:
    return min(MAX_UNPACKED, max(FREE_BYTES, packed * MAX_RATIO))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") and part not in {".", ".."} for part in path.parts)


def _paths(name: str, pass_over: Callable[[Path], None]) -> Iterator[tuple[Path, bool]]:
    """Files by name, and whether each was named itself; ``pass_over`` is told of those that are hidden in a folder."""
    path = Path(name).expanduser()
    if path.is_dir():
        for found in sorted(path.rglob("*")):
            if not found.is_file():
                continue
            if _hidden(found.relative_to(path)):
                pass_over(found)
            else:
                yield found, False
    elif path.is_file():
        yield path, True
    elif path.exists():
        raise BadInputError(f"{name} is not a regular file.", fix="Give a file or a folder; pipe a stream into `-`.")
    elif has_magic(name) and (matches := sorted(glob(str(path), recursive=True))):  # noqa: PTH207 - Path.glob takes no absolute pattern
        for match in matches:
            if Path(match).is_dir():
                yield from _paths(match, pass_over)
            elif Path(match).is_file():
                yield Path(match), False
    else:
        raise NotFoundError(
            f"There is no file, folder or pattern {name!r} with anything in it.",
            fix="Give a trace file, a folder of them, a pattern in quotes, or - for standard input.",
        )
