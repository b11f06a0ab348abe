"""Child processes pinned to a core, and what they cost: CPU seconds to the nanosecond, threads included."""

import ctypes
import os
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_LIBC = ctypes.CDLL(None, use_errno=True)


class ChildFailedError(Exception):
    """A server ended before it was ready."""


class Cores:
    """Which core serves and which one loads it; the same one where there is no other."""

    def __init__(self) -> None:
        allowed = sorted(os.sched_getaffinity(0))
        self.served, self.load = allowed[0], allowed[-1]


@contextmanager
def pinned(core: int | None) -> Generator[None]:
    """Children started within inherit one core, set before they run, so all their threads have it; ``None``: any."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def child(
    command: Sequence[str], core: int | None, log: Path, *, talks: bool = True
) -> Generator[subprocess.Popen[str]]:
    """A server that runs while the block does: stdout is a pipe, stderr goes to ``log``; ended by SIGTERM.

    One that does not ``talk`` in few words has its stdout in the log too: a full pipe would stop it.
    """
    with log.open("w") as errors:
        with pinned(core):
            process = subprocess.Popen(command, stdout=subprocess.PIPE if talks else errors, stderr=errors, text=True)
        try:
            yield process
        finally:
            stop(process)
            if process.stdout is not None:
                process.stdout.close()


def stop(process: subprocess.Popen[str], patience: float = 15.0) -> None:
    """Ask it to end; after ``patience`` seconds make it."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def first_line(process: subprocess.Popen[str], log: Path) -> str:
    """What a server prints when it is ready.

    Raises:
        ChildFailedError: it ended without a word; the message carries its stderr.
    """
    out: IO[str] | None = process.stdout
    line = out.readline() if out is not None else ""
    if not line:
        process.wait(10)
        msg = f"{process.args!r} ended with status {process.returncode}:\n{log.read_text()[-4000:]}"
        raise ChildFailedError(msg)
    return line


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def cpu_seconds(pid: int) -> float:
    """User + system seconds of a live process and its live descendants, all threads past and present.

    Read from the process's CPU clock (POSIX ``clock_getcpuclockid``), for /proc/PID/stat counts in steps of 10 ms.
    """
    total = 0.0
    for each in _descendants(pid):
        clock = ctypes.c_int()
        if error := _LIBC.clock_getcpuclockid(each, ctypes.byref(clock)):
            raise ProcessLookupError(error, os.strerror(error), str(each))
        total += time.clock_gettime(clock.value)
    return total


def settled_cpu(pid: int, *, quiet: float = 0.15, limit: float = 10.0) -> float:
    """CPU seconds once the process has come to rest, so that work it put off is charged to who caused it.

    At rest: less than 4 % of a core over ``quiet`` seconds; waits at most ``limit`` seconds for it.
    """
    deadline = time.monotonic() + limit
    before = cpu_seconds(pid)
    while True:
        time.sleep(quiet)
        after = cpu_seconds(pid)
        if after - before < 0.04 * quiet or time.monotonic() > deadline:
            return after
        before = after
