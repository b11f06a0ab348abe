"""Who may do what: tenants, their keys, and what each role allows."""

from typing import Final, Literal, NewType

import msgspec
from msgspec import Struct

from headway.core.limits import CallerLimits, TaskLimits

TenantId = NewType("TenantId", str)
KeyId = NewType("KeyId", str)
"""Names a key in lists and records; knowing it gives no access."""

Role = Literal["admin", "operator", "member", "viewer"]
Action = Literal[
    "call",  # call models
    "read",  # see one's own tenant's tasks, use and metrics
    "read_all",  # see every tenant's
    "steer",  # pin routes, drain replicas, drop what caches hold
    "manage",  # make and revoke keys, change tenants and limits
]
_MAY: Final[dict[Role, frozenset[Action]]] = {
    "admin": frozenset({"call", "read", "read_all", "steer", "manage"}),
    "operator": frozenset({"call", "read", "read_all", "steer"}),
    "member": frozenset({"call", "read"}),
    "viewer": frozenset({"read"}),
}


def may(role: Role, action: Action) -> bool:
    """Whether a key with ``role`` is allowed ``action``."""
    return action in _MAY[role]


class Tenant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whoever is kept apart from all others: a team, a customer, an environment."""

    id: TenantId
    name: str = ""
    models: tuple[str, ...] = ()
    """Those that its keys may call; none named: all."""
    limits: CallerLimits = msgspec.field(default_factory=CallerLimits)
    """Of all its keys together."""
    task: TaskLimits = msgspec.field(default_factory=TaskLimits)
    disabled: bool = False


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A virtual key, without its secret: nothing here opens anything, so it may be listed and logged."""

    id: KeyId
    tenant: TenantId
    prefix: str
    """The beginning of the secret, by which a person tells keys apart."""
    role: Role = "member"
    name: str = ""
    models: tuple[str, ...] = ()
    """Those that it may call, of its tenant's; none named: all of them."""
    limits: CallerLimits = msgspec.field(default_factory=CallerLimits)
    task: TaskLimits = msgspec.field(default_factory=TaskLimits)
    created: float
    """Epoch seconds, like ``expires``."""
    expires: float | None = None
    disabled: bool = False
    """Revoked: it stays in lists and records and opens nothing."""


class Caller(Struct, frozen=True):
    """Whom a request was recognised as."""

    key: Key
    tenant: Tenant

    def may_call(self, model: str) -> bool:
        """Whether both the key and its tenant allow ``model``."""
        key, tenant = self.key.models, self.tenant.models
        return (not key or model in key) and (not tenant or model in tenant)


class AuditRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was changed, or refused."""

    at: float
    """Epoch seconds."""
    actor: str
    """Who did it: a key's id, ``cli:USER``, or an address where no key was known."""
    action: str
    """``key.create``, ``tenant.update``, ``call.denied`` …"""
    subject: str
    """What it was done to: a key, a tenant, a model."""
    tenant: str = ""
    detail: str = ""
    """Never a prompt or a secret."""
    count: int = 1
    """How often, where many alike were recorded as one."""
