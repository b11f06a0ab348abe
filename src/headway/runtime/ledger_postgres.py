"""The ledger's rows in PostgreSQL, for workers on several machines."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headway.core.errors import MissingExtraError, StoreError
from headway.core.task import TaskId

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE: Final = 5
"""Seconds to wait for the database to answer."""
_ONE_AT_A_TIME: Final = 0x48445750
"""Two workers that start on an empty database must not both make its table."""


class PostgresTable:
    """Rows in PostgreSQL, for workers on several machines; connected anew after the connection broke.

    Args:
        url: e.g. ``postgresql://user@host:5432/database``.
        schema: made if it is not there, with its table.

    Raises:
        MissingExtraError: the extra ``postgres`` is not installed.
        StoreError: the database cannot be reached.
    """

    def __init__(self, url: str, schema: str = "headway") -> None:
        self._url = url
        self._table = '"' + schema.replace('"', '""') + '".paid'
        self._connection: Connection[Any] | None = None

        def prepare(connection: "Connection[Any]") -> None:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._table.removesuffix('.paid')}".encode())
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                "(task TEXT, key TEXT, body BYTEA NOT NULL, PRIMARY KEY (task, key))".encode()
            )

        self._in_transaction(prepare)

    def read(self, task: TaskId) -> list[bytes]:
        """All rows of a task."""
        found: list[bytes] = []

        def read(connection: "Connection[Any]") -> None:
            query = f"SELECT body FROM {self._table} WHERE task = %s ORDER BY key"  # noqa: S608 - our own name
            found.extend(bytes(body) for (body,) in connection.execute(query.encode(), (task,)))

        self._in_transaction(read)
        return found

    def write(self, rows: Sequence[tuple[TaskId, str, bytes]], *, wait: bool) -> bool:
        """Write all rows or none; never without ``wait``, because a network is between."""
        if not wait:
            return False

        def write(connection: "Connection[Any]") -> None:
            query = (
                f"INSERT INTO {self._table} VALUES (%s, %s, %s) "  # noqa: S608 - our own name
                "ON CONFLICT (task, key) DO UPDATE SET body = excluded.body"
            )
            connection.cursor().executemany(query.encode(), rows)

        self._in_transaction(write)
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _in_transaction(self, work: "Callable[[Connection[Any]], None]") -> None:
        try:
            import psycopg  # noqa: PLC0415 - an optional package
        except ModuleNotFoundError as error:
            raise MissingExtraError("A ledger in PostgreSQL", "postgres") from error
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_PATIENCE)
            with self._connection.transaction():
                work(self._connection)
        except psycopg.Error as error:
            raise StoreError(f"The ledger in PostgreSQL cannot be used: {type(error).__name__}.") from error
