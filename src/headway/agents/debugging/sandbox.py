"""Foreign code at work where it can do no harm: one command in a copy of a repository, by the program `cell`.

Linux only, because only its namespaces isolate. What the machine does not let be isolated is refused, never run anyway.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from headway.core.errors import SandboxError

_CELL: Final = Path(__file__).with_name("cell.py")
_SHOWN: Final = 16_384
"""Bytes that are kept of the beginning and of the end of what a command prints; the rest is read and dropped."""
_REPORT: Final = 16 * 1024 * 1024
_STATUS: Final = 65_536
_SETTING_UP: Final = 60.0
"""Seconds beside the command's own, for copying the repository."""
_REFUSED: Final = (
    "Run on Linux 5.12 or later, as root or where users may make namespaces (sysctl user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns); in a container, one that may (e.g. docker run --privileged)."
)

Ended = Literal[
    "exited",  # by itself
    "time",  # killed: it took too long
    "memory",  # killed: it took too much
]


class Limits(Struct, frozen=True, kw_only=True):
    """What a command may take."""

    seconds: float = 120.0
    memory: int = 2 << 30
    """Bytes: of the address space of each process, and of what all of them hold together."""
    disk: int = 512 << 20
    """Bytes of all files together, the copy of the repository among them."""
    files: int = 100_000
    processes: int = 128
    network: bool = False
    """Whether it may use the machine's network."""


class Ran(Struct, frozen=True, kw_only=True):
    """What came of a command."""

    ended: Ended
    code: int | None
    """Its exit code, or the signal it died of, negative; ``None``: it was killed at a limit."""
    output: str
    """What it printed: its beginning and its end."""
    report: bytes
    """What it wrote on its report descriptor."""
    seconds: float


class _Status(Struct):
    ended: str
    code: int | None = None
    why: str = ""


async def run_in_sandbox(
    copy: Path,
    command: Sequence[str],
    limits: Limits,
    *,
    readable: Sequence[Path] = (),
    written: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    report_in: str = "REPORT",
) -> Ran:
    """Run a command in a copy of its own, and wait until nothing of it is left.

    Args:
        copy: a folder; the command gets a copy of it, in ``/work``.
        command: its program by its absolute path, and its arguments.
        limits: what it may take.
        readable: further folders that it may read, where they are; an interpreter's.
        written: files in the sandbox by their path from its root, e.g. ``work/a.py``, written after the copy was made.
        env: its whole environment, but for the variable of the report.
        report_in: the variable that tells it the number of its report descriptor.

    Raises:
        SandboxError: this machine cannot isolate it, or it could not be started.
    """
    if sys.platform != "linux":
        raise SandboxError("Foreign code can only be isolated on Linux.", fix="Run it there, or in a virtual machine.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headway-sandbox-") as root:
        order = {
            "root": root,
            "copy": str(copy),
            "command": list(command),
            "readable": [str(path) for path in readable],
            "written": dict(written or {}),
            "env": dict(env or {}),
            "report_in": report_in,
            **msgspec.to_builtins(limits),
        }
        printed, reported, told = await _carried_out(order, limits.seconds + _SETTING_UP)
    return _ran(told, printed, reported, time.monotonic() - began)


async def _carried_out(order: Mapping[str, object], seconds: float) -> tuple[bytes, bytes, bytes]:
    """What a command printed, what it reported, and how it ended."""
    (report, report_end), (status, status_end) = os.pipe(), os.pipe()
    readers = [asyncio.create_task(_read(report, _REPORT)), asyncio.create_task(_read(status, _STATUS))]
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-IBS",
            str(_CELL),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(report_end, status_end),
            start_new_session=True,
            env={},
        )
    finally:
        os.close(report_end)
        os.close(status_end)
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    assert process.stdout is not None  # noqa: S101 - as above
    readers.append(asyncio.create_task(_ends(process.stdout)))
    try:
        async with asyncio.timeout(seconds):
            with suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode({**order, "report": report_end, "status": status_end}) + b"\n")
                await process.stdin.drain()
            reported, told, printed = await asyncio.gather(*readers)
            await process.wait()
            return printed, reported, told
    except TimeoutError:
        raise SandboxError(
            "The sandbox itself did not end in time.", fix="Give a smaller repository, or look at the machine."
        ) from None
    finally:
        await _end(process, process.stdin, readers)


async def _end(
    process: asyncio.subprocess.Process, lifeline: asyncio.StreamWriter, readers: Sequence[asyncio.Task[bytes]]
) -> None:
    """Kill what is left, whatever happened: the sandbox's first process dies with `cell`, all others with it."""
    for reader in readers:
        reader.cancel()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
    lifeline.close()
    await asyncio.gather(process.wait(), *readers, return_exceptions=True)


async def _read(descriptor: int, most: int) -> bytes:
    """All that comes; of more than ``most`` bytes the beginning."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        kept = bytearray()
        while piece := await reader.read(65_536):
            kept += piece[: most - len(kept)]
        return bytes(kept)
    finally:
        transport.close()


async def _ends(reader: asyncio.StreamReader) -> bytes:
    """The beginning and the end of what comes."""
    first, last, dropped = bytearray(), bytearray(), 0
    while piece := await reader.read(65_536):
        room = _SHOWN - len(first)
        first += piece[:room]
        last += piece[room:] if room < len(piece) else b""
        if (over := len(last) - _SHOWN) > 0:
            del last[:over]
            dropped += over
    return bytes(first + (b"\n... %d bytes left out ...\n" % dropped if dropped else b"") + last)


def _ran(told: bytes, printed: bytes, reported: bytes, seconds: float) -> Ran:
    output = printed.decode(errors="replace")
    try:
        status = msgspec.json.decode(told.partition(b"\n")[0], type=_Status)
    except msgspec.DecodeError:
        raise SandboxError(f"The sandbox ended without a word: {output[-500:]}", fix=_REFUSED) from None
    match status.ended:
        case "exited" | "time" | "memory":
            return Ran(ended=status.ended, code=status.code, output=output, report=reported, seconds=seconds)
        case _ if "networks" in status.why:
            raise SandboxError(
                f"This machine cannot cut foreign code off from the network: {status.why}.",
                fix=f"{_REFUSED} With --allow-network it runs with the network, and all else isolated.",
            )
        case _:
            raise SandboxError(f"This machine cannot isolate foreign code: {status.why}.", fix=_REFUSED)
