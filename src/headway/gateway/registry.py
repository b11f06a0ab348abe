"""Who there is: tenants, keys and the record of what was changed or refused, in SQLite or PostgreSQL."""

import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from headway.core.access import AuditRecord, Caller, Key, KeyId, Tenant, TenantId
from headway.core.errors import BadInputError, NotFoundError
from headway.gateway.access_file import AccessFile

_T = TypeVar("_T")
Execute = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a statement with ``?`` for its values, and gives its rows."""


class Database(Protocol):
    """Where a registry is kept. Both contexts may raise `StoreError`."""

    def changing(self) -> AbstractContextManager[Execute]:
        """A transaction: all of it is done, or nothing."""
        ...

    def reading(self) -> AbstractContextManager[Execute]:
        """The database as it stands."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Admitted(Struct, frozen=True):
    """Whom a secret stands for, and how long."""

    digest: bytes
    caller: Caller
    until: float | None
    """Of a secret that was replaced: when it ends; epoch seconds."""


_BUMP: Final = "UPDATE version SET number = number + 1"
_AUDIT: Final = "INSERT INTO audit (at, action, tenant, body) VALUES (?, ?, ?, ?)"


def digest_of(secret: bytes) -> bytes:
    """What is kept of a secret.

    SHA-256 once, and no slow hash: those slow down guessing of what people choose, but a secret is 256 random bits,
    which nobody guesses at any speed; and a hash that is slow for the gateway would let anyone keep it busy with
    made-up keys.
    """
    return hashlib.sha256(secret).digest()


class Registry:
    """Tenants, keys and audit. Every change is recorded in the same transaction that makes it.

    Args:
        database: where; closed with the registry.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    # --- reading

    def version(self) -> int:
        """A number that rises with every change of tenants and keys."""
        with self._database.reading() as execute:
            return int(execute("SELECT number FROM version", ())[0][0])

    def tenants(self) -> tuple[Tenant, ...]:
        """All of them, by name."""
        with self._database.reading() as execute:
            rows = execute("SELECT body FROM tenant ORDER BY id", ())
        return tuple(_read(body, Tenant) for (body,) in rows)

    def tenant(self, name: str) -> Tenant:
        """One of them.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self._database.reading() as execute:
            return _tenant(execute, name)

    def keys(self, tenant: str | None = None) -> tuple[Key, ...]:
        """All keys, or one tenant's, the oldest first."""
        with self._database.reading() as execute:
            if tenant is not None:
                _tenant(execute, tenant)
            rows = execute("SELECT body FROM key WHERE tenant = COALESCE(?, tenant)", (tenant,))
        return tuple(sorted((_read(body, Key) for (body,) in rows), key=lambda key: (key.created, key.id)))

    def key(self, name: str) -> Key:
        """The key of this id.

        Raises:
            NotFoundError: there is none.
        """
        with self._database.reading() as execute:
            return _key(execute, name)

    def admitted(self) -> dict[bytes, Admitted]:
        """Every secret's digest, with whom it stands for."""
        with self._database.reading() as execute:
            tenants = {tenant: _read(body, Tenant) for tenant, body in execute("SELECT id, body FROM tenant", ())}
            keys = {
                key: Caller(_read(body, Key), tenants[TenantId(tenant)])
                for key, tenant, body in execute("SELECT id, tenant, body FROM key", ())
            }
            rows = execute("SELECT digest, key, until FROM secret", ())
        found = [Admitted(bytes.fromhex(digest), keys[KeyId(key)], until) for digest, key, until in rows]
        return {one.digest: one for one in found}

    def audited(self, limit: int, *, tenant: str | None = None, action: str | None = None) -> tuple[AuditRecord, ...]:
        """What was changed or refused, newest first.

        Args:
            limit: how many at most.
            tenant: only this one's.
            action: only actions that begin so, e.g. ``call.``.
        """
        statement = """SELECT body FROM audit WHERE tenant = COALESCE(?, tenant)
            AND substr(action, 1, length(CAST(? AS TEXT))) = ? ORDER BY number DESC LIMIT ?"""
        with self._database.reading() as execute:
            rows = execute(statement, (tenant, action or "", action or "", limit))
        return tuple(_read(body, AuditRecord) for (body,) in rows)

    # --- changing

    def add_tenant(self, tenant: Tenant, record: AuditRecord) -> None:
        """A new tenant.

        Raises:
            BadInputError: there is one of this name.
        """
        with self._database.changing() as execute:
            if execute("SELECT 1 FROM tenant WHERE id = ?", (tenant.id,)):
                raise BadInputError(f"There is a tenant {tenant.id!r} already.", fix="Choose another name.")
            execute("INSERT INTO tenant VALUES (?, ?)", (tenant.id, _written(tenant)))
            _note(execute, record)

    def set_tenant(self, tenant: Tenant, record: AuditRecord) -> None:
        """A tenant as it shall be from now on.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self._database.changing() as execute:
            _tenant(execute, tenant.id)
            execute("UPDATE tenant SET body = ? WHERE id = ?", (_written(tenant), tenant.id))
            _note(execute, record)

    def add_key(self, key: Key, secret: bytes, record: AuditRecord) -> None:
        """A new key, opened by ``secret``.

        Raises:
            NotFoundError: there is no such tenant.
        """
        with self._database.changing() as execute:
            _tenant(execute, key.tenant)
            execute("INSERT INTO key VALUES (?, ?, ?)", (key.id, key.tenant, _written(key)))
            execute("INSERT INTO secret VALUES (?, ?, NULL)", (digest_of(secret).hex(), key.id))
            _note(execute, record)

    def set_key(self, key: Key, record: AuditRecord) -> None:
        """A key as it shall be from now on.

        Raises:
            NotFoundError: there is none of this id.
        """
        with self._database.changing() as execute:
            _key(execute, key.id)
            execute("UPDATE key SET body = ? WHERE id = ?", (_written(key), key.id))
            _note(execute, record)

    def replace_secret(self, key: Key, secret: bytes, until: float, record: AuditRecord) -> None:
        """Another secret for a key, whose old ones open it until ``until`` (epoch seconds) and no longer.

        Raises:
            NotFoundError: there is no such key.
        """
        with self._database.changing() as execute:
            _key(execute, key.id)
            execute("DELETE FROM secret WHERE key = ? AND until <= ?", (key.id, record.at))
            execute(
                "UPDATE secret SET until = ? WHERE key = ? AND (until IS NULL OR until > ?)", (until, key.id, until)
            )
            execute("INSERT INTO secret VALUES (?, ?, NULL)", (digest_of(secret).hex(), key.id))
            execute("UPDATE key SET body = ? WHERE id = ?", (_written(key), key.id))
            _note(execute, record)

    def record(self, records: Iterable[AuditRecord], *, keep: int) -> None:
        """Add to the audit, and leave no more than about ``keep`` records in it: the oldest go."""
        with self._database.changing() as execute:
            for record in records:
                _add(execute, record)
            execute("DELETE FROM audit WHERE number <= (SELECT MAX(number) FROM audit) - ?", (keep,))


class SqliteDatabase:
    """The registry in the file of keys and limits."""

    def __init__(self, file: AccessFile) -> None:
        self._file = file

    @contextmanager
    def changing(self) -> Generator[Execute]:
        """A transaction: all of it is done, or nothing."""
        with self._file.changing() as db:
            yield lambda statement, values: db.execute(statement, tuple(values)).fetchall()

    @contextmanager
    def reading(self) -> Generator[Execute]:
        """The file as it stands."""
        with self._file.reading() as db:
            yield lambda statement, values: db.execute(statement, tuple(values)).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _note(execute: Execute, record: AuditRecord) -> None:
    _add(execute, record)
    execute(_BUMP, ())


def _add(execute: Execute, record: AuditRecord) -> None:
    execute(_AUDIT, (record.at, record.action, record.tenant, _written(record)))


def _written(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def _read(body: str, kind: type[_T]) -> _T:
    return msgspec.json.decode(body, type=kind)


def _tenant(execute: Execute, name: str) -> Tenant:
    rows = execute("SELECT body FROM tenant WHERE id = ?", (name,))
    if not rows:
        raise NotFoundError(
            f"There is no tenant {name!r}.",
            fix=f"Make it: headway tenants create {name}. One that stands in a file as [tenants.{name}] is there once"
            " the gateway has started with that file; `headway tenants list` lists those that are.",
        )
    return _read(rows[0][0], Tenant)


def _key(execute: Execute, name: str) -> Key:
    rows = execute("SELECT body FROM key WHERE id = ?", (name,))
    if not rows:
        raise NotFoundError(f"There is no key {name!r}.", fix="See them with `headway keys list`.")
    return _read(rows[0][0], Key)
