"""What a registry of keys must do, over SQLite and over PostgreSQL."""

from collections.abc import Generator
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from services import own_name, postgres_url

from headway.core.access import AuditRecord, Tenant, TenantId
from headway.core.errors import BadInputError, NotFoundError, StoreError
from headway.core.limits import CallerLimits, Limit
from headway.gateway.access_file import AccessFile
from headway.gateway.keys import (
    Change,
    KeySettings,
    change_tenant,
    create_key,
    create_tenant,
    revoke_key,
    rotate_key,
)
from headway.gateway.registry import Registry, SqliteDatabase, digest_of
from headway.gateway.registry_postgres import PostgresDatabase

ME = Change("cli:me", 1000.0)
ACME = Tenant(id=TenantId("acme"))


@pytest.fixture(params=["sqlite", "postgres"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Registry]:
    if request.param == "sqlite":
        registry = Registry(SqliteDatabase(AccessFile(tmp_path / "access.db")))
        yield registry
        registry.close()
        return
    schema = own_name()
    database = PostgresDatabase(postgres_url(), schema=schema)
    yield Registry(database)
    with database.changing() as execute:
        execute(f"DROP SCHEMA {schema} CASCADE", ())
    database.close()


def test_a_key_is_found_by_its_secret_alone(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    made = create_key(registry, "acme", KeySettings(name="ci", role="viewer", models=("small",)), ME)
    admitted = registry.admitted()
    assert set(admitted) == {digest_of(made.secret.encode())}
    found = admitted[digest_of(made.secret.encode())]
    assert (found.caller.key, found.caller.tenant, found.until) == (made.key, ACME, None)
    assert made.key.prefix == made.secret[:12]
    assert (made.key.role, made.key.name, made.key.models, made.key.created) == ("viewer", "ci", ("small",), 1000.0)


def test_no_secret_is_in_any_text(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    made = create_key(registry, "acme", KeySettings(), ME)
    texts = (made, made.key, registry.keys(), registry.audited(10), registry.admitted())
    assert all(made.secret not in f"{text!r} {text}" for text in texts)


def test_a_revoked_key_is_marked_and_kept(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    made = create_key(registry, "acme", KeySettings(), ME)
    before = registry.version()
    revoke_key(registry, made.key.id, ME)
    revoke_key(registry, made.key.id, ME)
    assert registry.version() == before + 2
    assert [key.disabled for key in registry.keys("acme")] == [True]
    assert registry.admitted()[digest_of(made.secret.encode())].caller.key.disabled


def test_a_rotated_key_keeps_its_name_and_its_old_secret_for_a_while(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    first = create_key(registry, "acme", KeySettings(), ME)
    second = rotate_key(registry, first.key.id, 60.0, ME)
    third = rotate_key(registry, first.key.id, 5.0, Change("cli:me", 1010.0))
    admitted = registry.admitted()
    untils = [admitted[digest_of(one.secret.encode())].until for one in (first, second, third)]
    assert untils == [1015.0, 1015.0, None]
    assert {one.caller.key.id for one in admitted.values()} == {first.key.id}
    rotate_key(registry, first.key.id, 0.0, Change("cli:me", 2000.0))
    assert digest_of(first.secret.encode()) not in registry.admitted()


def test_a_tenant_can_be_changed_and_the_audit_says_what(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    changed = msgspec.structs.replace(ACME, disabled=True, limits=CallerLimits(concurrency=Limit(3, warn=2)))
    change_tenant(registry, changed, ME)
    assert registry.tenant("acme") == changed
    (record, _) = registry.audited(10)
    assert (record.actor, record.action, record.detail) == ("cli:me", "tenant.change", "disabled, limits")


def test_the_audit_is_newest_first_filtered_and_bounded(registry: Registry) -> None:
    records = [
        AuditRecord(at=float(n), actor="k1", action="call.denied", subject=str(n), tenant="acme" if n % 2 else "other")
        for n in range(10)
    ]
    registry.record(records, keep=100)
    assert [record.subject for record in registry.audited(3)] == ["9", "8", "7"]
    assert [record.subject for record in registry.audited(2, tenant="acme")] == ["9", "7"]
    assert registry.audited(5, action="key.") == ()
    assert len(registry.audited(50, action="call.")) == 10
    registry.record([AuditRecord(at=1.0, actor="x", action="key.unknown", subject="y")], keep=4)
    assert [record.subject for record in registry.audited(50)] == ["y", "9", "8", "7"]


def test_mistakes(registry: Registry) -> None:
    create_tenant(registry, ACME, ME)
    with pytest.raises(BadInputError, match="already"):
        create_tenant(registry, ACME, ME)
    with pytest.raises(NotFoundError, match="nobody"):
        create_key(registry, "nobody", KeySettings(), ME)
    with pytest.raises(NotFoundError, match="nobody"):
        registry.keys("nobody")
    with pytest.raises(NotFoundError, match="k0"):
        revoke_key(registry, "k0", ME)
    with pytest.raises(BadInputError, match="expired before"):
        create_key(registry, "acme", KeySettings(expires=999.0), ME)
    assert [record.action for record in registry.audited(10)] == ["tenant.create"]


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 65, "ü", "a/b", "a\n"])
def test_names_that_tenants_do_not_have(registry: Registry, name: str) -> None:
    with pytest.raises(BadInputError, match="cannot be a tenant's name"):
        create_tenant(registry, Tenant(id=TenantId(name)), ME)


def test_text_of_strangers_is_text(registry: Registry) -> None:
    odd = "Robert'); DROP TABLE key; -- %s {} ? \u2028 \x01"
    create_tenant(registry, Tenant(id=TenantId("acme"), name=odd), ME)
    assert registry.tenant("acme").name == odd
    assert registry.keys("acme") == ()


def test_a_postgres_that_is_not_there_is_told_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="Check that it runs") as raised:
        PostgresDatabase("postgresql://me:hidden@127.0.0.1:1/nothing")
    assert "hidden" not in str(raised.value)


def test_gateways_that_start_at_once_on_an_empty_postgres_share_its_tables() -> None:
    url, schema = postgres_url(), own_name()
    opened: list[PostgresDatabase] = []
    threads = [Thread(target=lambda: opened.append(PostgresDatabase(url, schema=schema))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [Registry(database).version() for database in opened] == [0, 0, 0, 0]
    with opened[0].changing() as execute:
        execute(f"DROP SCHEMA {schema} CASCADE", ())
    for database in opened:
        database.close()


def test_a_postgres_that_dropped_the_connection_is_connected_anew() -> None:
    schema = own_name()
    database = PostgresDatabase(postgres_url(), schema=schema)
    registry = Registry(database)
    other = PostgresDatabase(postgres_url(), schema=schema)
    with database.reading() as execute:
        (pid,) = execute("SELECT pg_backend_pid()", ())[0]
    with other.changing() as execute:
        execute("SELECT pg_terminate_backend(?)", (pid,))
    with pytest.raises(StoreError):
        registry.version()
    assert registry.version() == 0
    with other.changing() as execute:
        execute(f"DROP SCHEMA {schema} CASCADE", ())
    other.close()
    registry.close()
