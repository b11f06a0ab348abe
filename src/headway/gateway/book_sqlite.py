"""The book of limits in SQLite: shared by all workers on one machine."""

import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from headway.core.errors import StoreError
from headway.gateway.access_file import AccessFile
from headway.policy.limits.book import (
    LEASE_SECONDS,
    RATE_SECONDS,
    Correction,
    Exchange,
    Held,
    LeftError,
    Reply,
    Standing,
    Use,
    Want,
    counted_at,
    portion,
    rate_wait,
)

_ADD_USED = """INSERT INTO total (counter, used, since, touched) VALUES (?, ?, ?, ?)
    ON CONFLICT (counter) DO UPDATE SET used = used + excluded.used, touched = excluded.touched"""
_SET_HELD = """INSERT INTO holding (counter, holder, held) VALUES (?, ?, ?)
    ON CONFLICT (counter, holder) DO UPDATE SET held = excluded.held"""
_ADD_HELD = """INSERT INTO holding (counter, holder, held) VALUES (?, ?, ?)
    ON CONFLICT (counter, holder) DO UPDATE SET held = held + excluded.held"""
_ADD_SLOT = """INSERT INTO slot (counter, at, used) VALUES (?, ?, ?)
    ON CONFLICT (counter, at) DO UPDATE SET used = used + excluded.used"""
_HELD_BY_THE_LIVING = """SELECT COALESCE(SUM(held), 0) FROM holding JOIN holder ON holder.id = holding.holder
    WHERE counter = ? AND seen BETWEEN ? AND ?"""


class SqliteBook:
    """Counters in a file.

    Args:
        file: where; the book closes it.
        steady: seconds on one axis for all processes of the machine, which no setting of the clock moves. After a
            restart of the machine it begins anew: what is in its future counts as drawn now.
        wall: epoch seconds, for the age of tasks and for what is to be forgotten.
    """

    def __init__(
        self,
        file: AccessFile,
        *,
        steady: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._steady = steady
        self._wall = wall

    def join(self, holder: str) -> None:
        """A worker begins."""
        with self._file.changing() as db:
            db.execute("DELETE FROM holding WHERE holder = ?", (holder,))
            db.execute("INSERT OR REPLACE INTO holder VALUES (?, 0, 0, ?)", (holder, self._steady()))

    def exchange(self, holder: str, exchange: Exchange) -> Reply:
        """Take a report, then answer wishes in order."""
        with self._file.changing() as db:
            now = self._steady()
            row = db.execute("SELECT number FROM holder WHERE id = ?", (holder,)).fetchone()
            if row is None:
                raise LeftError(holder)
            if exchange.number > row[0]:
                self._report(db, holder, exchange.held)
                _correct(db, exchange.corrections)
                db.execute(
                    "UPDATE holder SET number = ?, settled = ?, seen = ? WHERE id = ?",
                    (exchange.number, exchange.settled, now, holder),
                )
            else:
                db.execute("UPDATE holder SET seen = ? WHERE id = ?", (now, holder))
            first = tuple([counter for counter in exchange.warned if self._warn(db, counter)])
            return Reply(tuple([self._answer(db, holder, want, now) for want in exchange.wants]), first)

    def settled(self, holder: str) -> int | None:
        """How many settlements of this holder are in the book; ``None``: it has left."""
        with self._file.reading() as db:
            row = db.execute("SELECT settled FROM holder WHERE id = ?", (holder,)).fetchone()
        return None if row is None else int(row[0])

    def leave(self, holder: str, charges: dict[str, int]) -> bool:
        """A worker has ended."""
        with self._file.changing() as db:
            if db.execute("DELETE FROM holder WHERE id = ?", (holder,)).rowcount == 0:
                return False
            db.execute("DELETE FROM holding WHERE holder = ?", (holder,))
            self._add(db, charges.items())
        return True

    def uses(self, counters: tuple[str, ...]) -> tuple[Use, ...]:
        """Where totals stand."""
        with self._file.reading() as db:
            return tuple([Use(_used(db, counter), _held(db, counter)) for counter in counters])

    def forget(self, untouched: float) -> None:
        """Forget totals that nothing was added to for so many seconds, and rates whose minute is over."""
        with self._file.changing() as db:
            db.execute("DELETE FROM total WHERE touched < ?", (self._wall() - untouched,))
            db.execute("DELETE FROM slot WHERE at <= ?", (self._steady() - RATE_SECONDS,))

    def close(self) -> None:
        """Close the file."""
        with suppress(StoreError):
            self._file.close()

    def _report(self, db: sqlite3.Connection, holder: str, reports: tuple[Held, ...]) -> None:
        self._add(db, [(one.counter, one.used) for one in reports if one.used])
        held = [(one.counter, holder, one.held) for one in reports if one.held]
        db.executemany(_SET_HELD, held)
        nothing = [(one.counter, holder) for one in reports if not one.held]
        db.executemany("DELETE FROM holding WHERE counter = ? AND holder = ?", nothing)

    def _add(self, db: sqlite3.Connection, charges: Iterable[tuple[str, int]]) -> None:
        wall = self._wall()
        db.executemany(_ADD_USED, [(counter, amount, wall, wall) for counter, amount in charges])

    def _warn(self, db: sqlite3.Connection, counter: str) -> bool:
        self._add(db, ((counter, 0),))
        return db.execute("UPDATE total SET warned = 1 WHERE counter = ? AND warned = 0", (counter,)).rowcount == 1

    def _answer(self, db: sqlite3.Connection, holder: str, want: Want, now: float) -> Standing:
        match want.kind:
            case "total":
                return _draw(db, holder, want, _used(db, want.counter), _held(db, want.counter))
            case "gauge":
                alive = (want.counter, now - LEASE_SECONDS, now)
                return _draw(db, holder, want, 0, int(db.execute(_HELD_BY_THE_LIVING, alive).fetchone()[0]))
            case "rate":
                return _draw_rate(db, want, now)
            case "elapsed":
                self._add(db, ((want.counter, 0),))
                since = db.execute("SELECT since FROM total WHERE counter = ?", (want.counter,)).fetchone()[0]
                return Standing(0, 0, 0, age=max(self._wall() - since, 0.0))


def _used(db: sqlite3.Connection, counter: str) -> int:
    row = db.execute("SELECT used FROM total WHERE counter = ?", (counter,)).fetchone()
    return 0 if row is None else int(row[0])


def _held(db: sqlite3.Connection, counter: str) -> int:
    return int(db.execute("SELECT COALESCE(SUM(held), 0) FROM holding WHERE counter = ?", (counter,)).fetchone()[0])


def _draw(db: sqlite3.Connection, holder: str, want: Want, used: int, held: int) -> Standing:
    given = portion(want.limit - used - held, want.least, want.need)
    if given:
        db.execute(_ADD_HELD, (want.counter, holder, given))
    return Standing(given, used, held + given)


def _draw_rate(db: sqlite3.Connection, want: Want, now: float) -> Standing:
    at = counted_at(now)
    counter = (want.counter,)
    db.execute("DELETE FROM slot WHERE counter = ? AND at <= ?", (want.counter, now - RATE_SECONDS))
    slots = db.execute("SELECT at, used FROM slot WHERE counter = ? ORDER BY at", counter).fetchall()
    if slots and slots[-1][0] > at:  # the machine was restarted, and its steady time with it
        slots = [(at, sum(used for _, used in slots))]
        db.execute("DELETE FROM slot WHERE counter = ?", counter)
        db.execute(_ADD_SLOT, (want.counter, *slots[0]))
    used = sum(used for _, used in slots)
    left = want.limit - used
    given = portion(left, want.least, want.need)
    if given:
        db.execute(_ADD_SLOT, (want.counter, at, given))
        return Standing(given, used + given, 0, at)
    return Standing(0, used, 0, at, wait=rate_wait(slots, want.least - left, now))


def _correct(db: sqlite3.Connection, corrections: tuple[Correction, ...]) -> None:
    db.executemany(
        "UPDATE slot SET used = MAX(used - ?, 0) WHERE counter = ? AND at = ?",
        [(one.unused, one.counter, one.at) for one in corrections],
    )
