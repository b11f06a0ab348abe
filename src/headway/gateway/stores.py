"""Keys and limits where the operator wants them: a SQLite file, PostgreSQL, Redis."""

import hashlib
from pathlib import Path

from platformdirs import user_data_path

from headway.gateway.access_file import AccessFile, default_access_file
from headway.gateway.book_redis import RedisBook
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.registry import Registry, SqliteDatabase
from headway.gateway.registry_postgres import PostgresDatabase
from headway.policy.limits.book import Book


def open_registry(where: str | None) -> Registry:
    """Keys, tenants and audit.

    Args:
        where: a file, or ``postgresql://…``; ``None``: the file in the user's data directory.

    Raises:
        HeadwayError: it cannot be opened.
    """
    if where is not None and where.startswith(("postgresql://", "postgres://")):
        return Registry(PostgresDatabase(where))
    return Registry(SqliteDatabase(AccessFile(_file(where))))


def open_book(where: str | None) -> Book:
    """What limits are held on.

    Args:
        where: a file, or ``redis://…``; ``None``: the file in the user's data directory.

    Raises:
        HeadwayError: it cannot be opened.
    """
    if _is_redis(where):
        return RedisBook(where or "")
    return SqliteBook(AccessFile(_file(where)))


def intents_directory(where: str | None) -> Path:
    """Where this machine's workers on the book at ``where`` write down what they reserve: on a local disk."""
    if _is_redis(where):
        return user_data_path("headway") / f"intents-{hashlib.sha256((where or '').encode()).hexdigest()[:16]}"
    file = _file(where)
    return file.with_name(f"{file.name}-intents")


def _is_redis(where: str | None) -> bool:
    return where is not None and where.startswith(("redis://", "rediss://", "valkey://", "unix://"))


def _file(where: str | None) -> Path:
    return default_access_file() if where is None else Path(where)
