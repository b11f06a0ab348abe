"""Files that are there whole or not at all."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from headway.core.errors import BadInputError


def check_target(path: Path, option: str, *, directory: bool = False) -> None:
    """See before any work whether a file can be written to ``path``, without writing.

    Args:
        path: the file, which may exist.
        option: what it was named with, for the error.
        directory: whether it may be a directory to write into.

    Raises:
        BadInputError: its directory does not exist, or what is there may not be written.
    """
    try:
        target = path if path.exists() else path.parent
    except OSError as error:  # a name too long, a directory that may not be entered
        raise unwritable(path, str(error.strerror), option) from error
    if target != path and not target.is_dir():
        raise unwritable(path, "its directory does not exist", option)
    if target == path and path.is_dir() and not directory:
        raise unwritable(path, "it is a directory", option)
    if not os.access(target, os.W_OK | os.X_OK if target.is_dir() else os.W_OK):
        raise unwritable(path, "permission denied", option)


@contextmanager
def whole_file(path: Path, option: str) -> Generator[IO[bytes]]:
    """A file that takes its name when all is written; on an error nothing is left, and what was there stays.

    What is no regular file, as a pipe is, is written to as it stands.

    Raises:
        BadInputError: it cannot be written.
    """
    part: Path | None = None
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()
        part = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
        with part.open("wb") as file:
            yield file
        part.replace(target)
    except OSError as error:
        if error.filename not in {None, str(part), str(path)}:  # of another file, opened while this one was
            raise
        raise unwritable(path, error.strerror or str(error), option) from error
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str, option: str) -> Path:
    """Write a whole file as UTF-8; where it is, in full.

    Raises:
        BadInputError: it cannot be written.
    """
    with whole_file(path, option) as file:
        file.write(text.encode(errors="replace"))
    return path.resolve()


def unwritable(path: Path, reason: str, option: str) -> BadInputError:
    """What is said of a file that cannot be written."""
    return BadInputError(f"Nothing can be written to {path}: {reason}.", fix=f"Give another path with {option}.")
