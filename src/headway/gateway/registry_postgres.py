"""The registry in PostgreSQL: keys, tenants and audit shared by gateways on several machines."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from headway.core.errors import MissingExtraError, StoreError
from headway.gateway.access_file import REGISTRY_SCHEMA
from headway.gateway.registry import Execute

if TYPE_CHECKING:
    from psycopg import Connection

_PATIENCE_SECONDS: Final = 5
_NUMBERED: Final = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
_ONE_AT_A_TIME: Final = 0x48445741
"""Two gateways that start on an empty database must not both make its tables."""


class PostgresDatabase:
    """Tables in one schema of a database; connected when first needed and again after the connection broke.

    Args:
        url: e.g. ``postgresql://user@host:5432/database``.
        schema: made if it is not there, with its tables.

    Raises:
        MissingExtraError: the client is not installed.
        StoreError: the database cannot be reached, or the tables cannot be made.
    """

    def __init__(self, url: str, *, schema: str = "headway") -> None:
        self._url = url
        self._schema = schema
        self._lock = threading.Lock()
        self._connection: Connection[tuple[Any, ...]] | None = None
        with self.changing() as execute:
            execute(f"SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME})", ())
            name = '"' + schema.replace('"', '""') + '"'
            execute(f"CREATE SCHEMA IF NOT EXISTS {name}", ())
            if not execute("SELECT to_regclass(?)", (f"{name}.version",))[0][0]:
                for statement in REGISTRY_SCHEMA.format(number=_NUMBERED).split(";"):
                    if statement.strip():
                        execute(statement, ())

    @contextmanager
    def changing(self) -> Generator[Execute]:
        """A transaction: all of it is done, or nothing.

        Raises:
            StoreError: the database cannot be used.
        """
        with self._lock, self._connected() as connection, connection.transaction():
            yield _executing(connection)

    @contextmanager
    def reading(self) -> Generator[Execute]:
        """The database as it stands.

        Raises:
            StoreError: the database cannot be used.
        """
        with self.changing() as execute:
            yield execute

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _connected(self) -> "Generator[Connection[tuple[Any, ...]]]":
        try:
            import psycopg  # noqa: PLC0415 - only where it is used
        except ImportError as error:
            raise MissingExtraError("Keys in PostgreSQL", "postgres") from error
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    self._url,
                    autocommit=True,
                    connect_timeout=_PATIENCE_SECONDS,
                    options=f"-c search_path={self._schema} -c statement_timeout={_PATIENCE_SECONDS}s",
                )
            yield self._connection
        except psycopg.Error as error:
            if self._connection is not None and self._connection.broken:
                self._connection.close()
                self._connection = None
            raise StoreError(
                f"PostgreSQL, which holds the keys, cannot be used: {type(error).__name__}"
                f"{f' ({error.sqlstate})' if error.sqlstate else ''}.",
                fix="Check that it runs, and that its address and rights are as configured.",
            ) from error


def _executing(connection: "Connection[tuple[Any, ...]]") -> Execute:
    def execute(statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(cast("Any", statement.replace("?", "%s")), values or None)
        return [] if cursor.description is None else cursor.fetchall()

    return execute
