"""Who is alive: each worker renews a lease in PostgreSQL, and what a dead one was at is handed to the living."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from headway.core.errors import MissingExtraError, StoreError

if TYPE_CHECKING:
    from psycopg import Connection

LEASE_SECONDS: Final = 4.0
"""Without renewal, after which a worker counts as dead. By the database's clock alone."""
PULSE_SECONDS: Final = 1.0
"""Between two renewals."""
_CONNECT_SECONDS: Final = 5
_START_SECONDS: Final = 60.0
"""That a worker may take to start before its first renewal."""


class Leases:
    """The leases of all workers of one schema; used from one thread at a time.

    Args:
        url: the database.
        schema: made if it is not there, with its table.
        worker: whose lease this is; unlike any other's.

    Raises:
        MissingExtraError: the extra ``postgres`` is not installed.
        StoreError: the database cannot be used.
    """

    def __init__(self, url: str, schema: str, worker: str) -> None:
        self._url = url
        self._worker = worker
        self._table = '"' + schema.replace('"', '""') + '".lease'
        self._connection: Connection[Any] | None = None

        def prepare(connection: "Connection[Any]") -> None:
            schema = self._table.removesuffix(".lease")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x48445751,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                "(worker TEXT PRIMARY KEY, seen TIMESTAMPTZ NOT NULL)".encode()
            )
            self._insert(connection, ahead=_START_SECONDS)

        self._in_transaction(prepare)

    def renew(self) -> bool:
        """Stay alive.

        Returns:
            Whether one still was: ``False`` after others took one for dead, and so have what one was at.

        Raises:
            StoreError: the database cannot be used.
        """
        held = True

        def renew(connection: "Connection[Any]") -> None:
            nonlocal held
            query = f"UPDATE {self._table} SET seen = clock_timestamp() WHERE worker = %s"  # noqa: S608 - our own name
            held = connection.execute(query.encode(), (self._worker,)).rowcount == 1
            if not held:
                self._insert(connection, ahead=0.0)

        self._in_transaction(renew)
        return held

    def reap(self, hand_over: Callable[[str], object]) -> list[str]:
        """Hand over what each dead worker was at, one reaper a worker at a time.

        Args:
            hand_over: makes a worker's tasks anybody's; may be called again for the same worker after a crash.

        Returns:
            The dead.

        Raises:
            StoreError: the database cannot be used.
        """
        dead: list[str] = []

        def reap(connection: "Connection[Any]") -> None:
            query = (
                f"SELECT worker FROM {self._table} "  # noqa: S608 - our own name
                "WHERE seen < clock_timestamp() - %s * interval '1 second' FOR UPDATE SKIP LOCKED"
            )
            for (worker,) in connection.execute(query.encode(), (LEASE_SECONDS,)).fetchall():
                hand_over(worker)
                self._delete(connection, worker)
                dead.append(worker)

        self._in_transaction(reap)
        return dead

    def close(self) -> None:
        """Close the connection. The lease runs out, and what was left unfinished goes to others."""
        if self._connection is not None:
            self._connection.close()

    def _insert(self, connection: "Connection[Any]", *, ahead: float) -> None:
        query = (
            f"INSERT INTO {self._table} "  # noqa: S608 - our own name
            "VALUES (%s, clock_timestamp() + %s * interval '1 second') "
            "ON CONFLICT (worker) DO UPDATE SET seen = excluded.seen"
        )
        connection.execute(query.encode(), (self._worker, ahead))

    def _delete(self, connection: "Connection[Any]", worker: str) -> None:
        query = f"DELETE FROM {self._table} WHERE worker = %s"  # noqa: S608 - our own name
        connection.execute(query.encode(), (worker,))

    def _in_transaction(self, work: "Callable[[Connection[Any]], None]") -> None:
        try:
            import psycopg  # noqa: PLC0415 - an optional package
        except ModuleNotFoundError as error:
            raise MissingExtraError("Tasks in PostgreSQL", "postgres") from error
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS)
            with self._connection.transaction():
                work(self._connection)
        except psycopg.Error as error:
            raise StoreError(f"The workers' leases cannot be used: {type(error).__name__}.") from error
