"""Keys and limits where the operator wants them: a SQLite file, PostgreSQL, Redis."""

import hashlib
import re
from pathlib import Path
from typing import Final

from platformdirs import user_data_path

from headway.core.errors import BadInputError
from headway.gateway.access_file import AccessFile, default_access_file
from headway.gateway.book_redis import RedisBook
from headway.gateway.book_sqlite import SqliteBook
from headway.gateway.redis_client import SCHEMES, checked
from headway.gateway.registry import Registry, SqliteDatabase
from headway.gateway.registry_postgres import PostgresDatabase
from headway.policy.limits.book import Book

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}")


def open_registry(where: str | None) -> Registry:
    """Keys, tenants and audit.

    Args:
        where: a file, or ``postgresql://…``; ``None``: the file in the user's data directory.

    Raises:
        HeadwayError: it cannot be opened.
    """
    if where is not None and keys_on_server(where):
        return Registry(PostgresDatabase(where))
    return Registry(SqliteDatabase(AccessFile(_file(where))))


def open_book(where: str | None) -> Book:
    """What limits are held on.

    Args:
        where: a file, or ``redis://…``; ``None``: the file in the user's data directory.

    Raises:
        HeadwayError: it cannot be opened.
    """
    if where is not None and limits_on_server(where):
        return RedisBook(where)
    return SqliteBook(AccessFile(_file(where)))


def intents_directory(where: str | None) -> Path:
    """Where this machine's workers on the book at ``where`` write down what they reserve: on a local disk."""
    if where is not None and limits_on_server(where):
        return user_data_path("headway") / f"intents-{hashlib.sha256(where.encode()).hexdigest()[:16]}"
    file = _file(where)
    return file.with_name(f"{file.name}-intents")


def keys_on_server(where: str) -> bool:
    """Whether this is the address of a server that keeps keys; else it names a file.

    Raises:
        BadInputError: it is an address, and of nothing that can keep them.
    """
    return _on_server(where, "Keys", "postgresql://", "postgres://")


def limits_on_server(where: str) -> bool:
    """Whether this is the address of a server that counts use; else it names a file.

    Raises:
        BadInputError: it is an address, and of nothing that can count it.
    """
    there = _on_server(where, "Limits", *SCHEMES)
    if there:
        checked(where, "Limits in Redis")
    return there


def _on_server(where: str, what: str, *known: str) -> bool:
    if where.startswith(known):
        return True
    scheme, address, _ = where.partition("://")
    if not address:
        return False
    # All else in there may be a password.
    shown = f"{scheme}://…" if _SCHEME.fullmatch(scheme) else "an address of this kind"
    raise BadInputError(
        f"{what} cannot be kept at {shown}.", fix=f"Give a file, or an address that begins with {' or '.join(known)}."
    )


def _file(where: str | None) -> Path:
    return default_access_file() if where is None else Path(where)
