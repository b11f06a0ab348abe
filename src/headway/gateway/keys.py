"""Making, changing and revoking keys and tenants; each change says who made it."""

import re
import secrets
from typing import Final

import msgspec
from msgspec import Struct

from headway.core.access import AuditRecord, Key, KeyId, Role, Tenant, TenantId
from headway.core.errors import BadInputError
from headway.core.limits import CallerLimits, TaskLimits
from headway.gateway.registry import Registry

PREFIX: Final = "sk-hw-"
"""Scanners for leaked secrets can look for it."""
_SECRET_BYTES: Final = 32
_SHOWN: Final = len(PREFIX) + 6
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class NewKey(Struct, frozen=True, repr_omit_defaults=True):
    """A key and its secret, which is nowhere else and cannot be shown again."""

    key: Key
    secret: str

    def __repr__(self) -> str:
        """Without the secret."""
        return f"NewKey({self.key.id})"


class Change(Struct, frozen=True):
    """Who changes something, and when."""

    actor: str
    at: float
    """Epoch seconds."""


class KeySettings(Struct, frozen=True, kw_only=True):
    """What a new key is to be; see `Key`."""

    role: Role = "member"
    name: str = ""
    models: tuple[str, ...] = ()
    limits: CallerLimits = CallerLimits()
    task: TaskLimits = TaskLimits()
    expires: float | None = None


def create_key(registry: Registry, tenant: str, settings: KeySettings, change: Change) -> NewKey:
    """A new key of a tenant.

    Raises:
        NotFoundError: there is no such tenant.
        BadInputError: it would have expired already.
    """
    if settings.expires is not None and settings.expires <= change.at:
        raise BadInputError("The key would have expired before it is made.", fix="Give a time in the future.")
    secret = _secret()
    key = Key(
        id=KeyId(f"k{secrets.token_hex(5)}"),
        tenant=TenantId(tenant),
        prefix=secret[:_SHOWN],
        created=change.at,
        **msgspec.structs.asdict(settings),
    )
    registry.add_key(key, secret.encode(), _record(change, "key.create", key.id, key.tenant, f"role {key.role}"))
    return NewKey(key, secret)


def revoke_key(registry: Registry, key_id: str, change: Change) -> Key:
    """A key that opens nothing any more. Revoking twice is harmless.

    Raises:
        NotFoundError: there is no such key.
    """
    key = msgspec.structs.replace(registry.key(key_id), disabled=True)
    registry.set_key(key, _record(change, "key.revoke", key.id, key.tenant))
    return key


def rotate_key(registry: Registry, key_id: str, overlap: float, change: Change) -> NewKey:
    """Another secret for the same key, whose limits and use go on. The old one opens it for ``overlap`` seconds more.

    Raises:
        NotFoundError: there is no such key.
        BadInputError: it was revoked.
    """
    old = registry.key(key_id)
    if old.disabled:
        raise BadInputError(f"The key {key_id!r} was revoked.", fix="Create another with `headway keys create`.")
    secret = _secret()
    key = msgspec.structs.replace(old, prefix=secret[:_SHOWN])
    record = _record(change, "key.rotate", key.id, key.tenant, f"the old secret opens it for {overlap:g} s more")
    registry.replace_secret(key, secret.encode(), change.at + overlap, record)
    return NewKey(key, secret)


def create_tenant(registry: Registry, tenant: Tenant, change: Change) -> Tenant:
    """A new tenant.

    Raises:
        BadInputError: there is one of this name, or the name has characters that names do not have.
    """
    if not _NAME.fullmatch(tenant.id):
        raise BadInputError(
            f"{tenant.id[:64]!r} cannot be a tenant's name.", fix="Use up to 64 letters, digits, dots, dashes and _."
        )
    registry.add_tenant(tenant, _record(change, "tenant.create", tenant.id, tenant.id))
    return tenant


def change_tenant(registry: Registry, tenant: Tenant, change: Change) -> Tenant:
    """A tenant as it shall be from now on.

    Raises:
        NotFoundError: there is none of this name.
    """
    old, new = msgspec.to_builtins(registry.tenant(tenant.id)), msgspec.to_builtins(tenant)
    changed = ", ".join(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))
    registry.set_tenant(tenant, _record(change, "tenant.change", tenant.id, tenant.id, changed))
    return tenant


def _secret() -> str:
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def _record(change: Change, action: str, subject: str, tenant: str, detail: str = "") -> AuditRecord:
    return AuditRecord(at=change.at, actor=change.actor, action=action, subject=subject, tenant=tenant, detail=detail)
