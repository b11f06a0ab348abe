"""Compiles the mock engine and the load generator on first use; later runs find them in the user's cache."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

SOURCES = Path(__file__).parent
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra")


class CannotBuildError(Exception):
    """The rig cannot run here; the message says why and what would help."""


def compiler() -> str:
    """Path of a C compiler.

    Raises:
        CannotBuildError: this is no Linux, or no C compiler is on the path.
    """
    if sys.platform != "linux":
        msg = f"the rig uses epoll and timerfd, which {sys.platform} has not: run it on Linux"
        raise CannotBuildError(msg)
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if found is None:
        raise CannotBuildError("no C compiler on the path (cc, gcc or clang): install one, e.g. apt-get install gcc")
    return found


def build(name: str, folder: Path | None = None) -> Path:
    """The program compiled from ``rig/NAME.c``, kept in ``folder`` under the hash of its sources and flags.

    Raises:
        CannotBuildError: as `compiler`, or the compiler failed; the message ends with what it said.
    """
    folder = folder or user_cache_path("headway") / "bench"
    sources = [SOURCES / f"{name}.c", SOURCES / "http.h"]
    key = hashlib.sha256(repr(FLAGS).encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    program = folder / f"{name}-{key}"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=folder, prefix=f"{name}-")
    os.close(handle)
    done = subprocess.run(
        [compiler(), *FLAGS, "-o", fresh, str(sources[0])], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        Path(fresh).unlink()
        raise CannotBuildError(f"compiling {sources[0].name} failed:\n{done.stderr}")
    Path(fresh).replace(program)
    return program
