"""What a worker reserves and settles, written down first, so that its death loses nothing and doubles nothing.

Each worker appends to a file of its own; a write that has returned outlives the process, however that is ended. The
system's lock on the file is the sign of life: it goes with the process. Whoever finds a file without one charges the
book with what is in there: calls that had ended with what they used, calls that were under way with what was reserved
for them.
"""

import fcntl
import os
import struct
from collections import deque
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct

from headway.core.errors import StoreError
from headway.policy.limits.counter import Plan
from headway.policy.limits.grant import Grant

_SUFFIX: Final = ".intents"
_NEW: Final = ".new"
_RECORD: Final = struct.Struct("<BQQqqQ")
"""Kind, grant, plan, tokens, money, settlement; of a plan: kind, 0, plan, length of what follows, 0, 0."""
_SUM: Final = struct.Struct("<I")
_SIZE: Final = _RECORD.size + _SUM.size
_PLAN, _BEGUN, _SETTLED, _RELEASED = 1, 2, 3, 4
COMPACT_BYTES: Final = 4 * 1024**2

_Totals = list[tuple[str, int]]
"""Names of the counters that a plan's calls are charged to, and which of a call's amounts each counts."""


class Intents:
    """One worker's file.

    Args:
        directory: of this book's workers on this machine; made if it is not there.
        holder: the worker's name in the book.

    Raises:
        StoreError: the file cannot be made.
    """

    def __init__(self, directory: Path, holder: str) -> None:
        self.path = directory / f"{holder}{_SUFFIX}"
        self._open: dict[int, bytes] = {}
        self._ended: deque[tuple[int, bytes]] = deque()
        """Settlements that the book may not have yet, each with the beginning of its call."""
        self._plans: dict[int, bytes] = {}
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = _locked(self.path)
        except OSError as error:
            raise _trouble(self.path, error) from error
        self._size = 0

    def begin(self, grant: Grant) -> None:
        """A call is about to be made.

        Raises:
            StoreError: it could not be written down, so the call must not be made.
        """
        plan = grant.plan
        if not plan.totals:
            return
        if plan.number not in self._plans:
            definition = _definition(plan)
            self._append(definition)
            self._plans[plan.number] = definition
        record = _record(_BEGUN, grant.number, plan.number, grant.tokens, grant.money, 0)
        self._append(record)
        self._open[grant.number] = record

    def settle(self, grant: Grant, tokens: int, money: int, settlement: int) -> None:
        """A call has ended and used so much; it is the worker's ``settlement``-th to end.

        Raises:
            StoreError: it could not be written down.
        """
        self._end(_SETTLED, grant, tokens, money, settlement)

    def release(self, grant: Grant, settlement: int) -> None:
        """A call was not made.

        Raises:
            StoreError: it could not be written down.
        """
        self._end(_RELEASED, grant, 0, 0, settlement)

    def told(self, settlement: int) -> None:
        """The book has all settlements up to this one: the file may forget them when it has grown."""
        ended = self._ended
        while ended and ended[0][0] <= settlement:
            ended.popleft()
        if self._size > COMPACT_BYTES:
            self._compact()

    def remove(self) -> None:
        """The worker's account is closed: nothing in here is needed any more."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Let go of the file and leave it to whoever looks after the dead."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _end(self, kind: int, grant: Grant, tokens: int, money: int, settlement: int) -> None:
        begun = self._open.get(grant.number)
        if begun is None:
            return
        record = _record(kind, grant.number, grant.plan.number, tokens, money, settlement)
        self._append(record)
        del self._open[grant.number]
        self._ended.append((settlement, begun + record))

    def _append(self, data: bytes) -> None:
        try:
            written = os.write(self._file, data)
            if written != len(data):
                os.ftruncate(self._file, self._size)  # what follows half a record could not be read
                raise OSError(28, "no space left for a whole record")  # noqa: TRY301 - the same as a write refused
        except OSError as error:
            raise _trouble(self.path, error) from error
        self._size += written

    def _compact(self) -> None:
        kept = [*self._open.values(), *(both for _, both in self._ended)]
        used = {_RECORD.unpack_from(record)[2] for record in kept}
        self._plans = {number: definition for number, definition in self._plans.items() if number in used}
        data = b"".join([*self._plans.values(), *kept])
        fresh = self.path.with_suffix(_NEW)
        try:
            file = _locked(fresh)
            try:
                os.truncate(file, 0)
                if os.write(file, data) != len(data):
                    return
                fresh.replace(self.path)
                file, self._file, self._size = self._file, file, len(data)
            finally:
                os.close(file)
        except OSError:
            return  # the old file is whole, and grows on


class Left(Struct):
    """What a dead worker had written down."""

    plans: dict[int, _Totals] = {}
    begun: dict[int, tuple[int, int, int]] = {}
    """Calls that were under way: by grant, (plan, tokens, money)."""
    ended: list[tuple[int, int, int, int]] = []
    """(settlement, plan, tokens, money) of calls that were made."""

    def charges(self, settled: int) -> dict[str, int]:
        """What the book has to be charged with, which has the first ``settled`` settlements."""
        charges: dict[str, int] = {}
        late = [(plan, tokens, money) for settlement, plan, tokens, money in self.ended if settlement > settled]
        for plan, tokens, money in (*late, *self.begun.values()):
            amounts = (1, tokens, money)
            for counter, which in self.plans[plan]:
                charges[counter] = charges.get(counter, 0) + amounts[which]
        return charges


def read(data: bytes) -> Left:
    """Read a worker's file, up to where it was cut off."""
    left, at = Left(), 0
    while at + _SIZE <= len(data):
        fields = data[at : at + _RECORD.size]
        if _SUM.unpack_from(data, at + _RECORD.size)[0] != crc32(fields):
            break
        kind, grant, plan, tokens, money, settlement = _RECORD.unpack(fields)
        at += _SIZE
        if kind == _PLAN:
            text = data[at : at + tokens]
            if len(text) != tokens or crc32(text) != money:
                break
            left.plans[plan] = msgspec.json.decode(text, type=_Totals)
            at += tokens
        elif kind == _BEGUN:
            left.begun[grant] = (plan, tokens, money)
        else:
            left.begun.pop(grant, None)
            if kind == _SETTLED:
                left.ended.append((settlement, plan, tokens, money))
    return left


class Dead:
    """A dead worker's file, locked so that nobody else looks after it at the same time."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file = file
        self.holder = path.name.removesuffix(_SUFFIX)

    def read(self) -> Left:
        """What it says."""
        with os.fdopen(os.dup(self._file), "rb") as opened:
            return read(opened.read())

    def bury(self) -> None:
        """Its account is closed."""
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the lock."""
        os.close(self._file)


def dead(directory: Path) -> list[Dead]:
    """The files of workers that live no more; the caller closes each.

    Raises:
        StoreError: the directory cannot be read.
    """
    found: list[Dead] = []
    try:
        for path in sorted(directory.glob(f"*{_SUFFIX}")):
            file = _if_dead(path)
            if file is not None:
                found.append(Dead(path, file))
        for path in directory.glob(f"*{_NEW}"):
            file = _if_dead(path)
            if file is not None:
                path.unlink(missing_ok=True)
                os.close(file)
    except OSError as error:
        for one in found:
            one.close()
        raise _trouble(directory, error) from error
    return found


def _if_dead(path: Path) -> int | None:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        here, there = os.fstat(file), path.stat()
    except (BlockingIOError, FileNotFoundError):
        os.close(file)
        return None
    if here.st_ino != there.st_ino:  # it was replaced by a shorter one between our opening and locking it
        os.close(file)
        return None
    return file


def _locked(path: Path) -> int:
    """Make a file that is locked. Who looks for the dead may lock it first, and take it away: then it is made again."""
    while True:
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file).st_nlink:
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _definition(plan: Plan) -> bytes:
    text = msgspec.json.encode([(counter.name, which) for counter, which in plan.totals])
    return _record(_PLAN, 0, plan.number, len(text), crc32(text), 0) + text


def _record(kind: int, grant: int, plan: int, tokens: int, money: int, settlement: int) -> bytes:
    fields = _RECORD.pack(kind, grant, plan, tokens, money, settlement)
    return fields + _SUM.pack(crc32(fields))


def _trouble(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"What calls use cannot be written to {path}: {error.strerror or error}.",
        fix="Free disk space, and check that the directory may be written.",
    )
