"""Where a call goes to and whose it is, as far as a cache cares: what must be equal for answers to be shared."""

from hashlib import blake2b
from typing import Final

from msgspec import Struct

from headway.policy.cache.labels import scope_of_tenant
from headway.policy.cache.rules import CacheRule, CacheRules
from headway.wire.dialect import Dialect

_PLACES: Final = 4096
"""Remembered; callers choose the names of models, so there is a bound."""
_CREDENTIALS: Final = (b"authorization", b"x-api-key", b"api-key", b"cookie")
"""Headers that engines may know their callers by."""
_DIGEST_BYTES: Final = 16


class Place(Struct, frozen=True):
    """A path and a model under a rule."""

    rule: CacheRule
    route: str
    """Another for each rule, version, path, dialect and model."""


class Places:
    """The rule of each path and model that was called."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._known: dict[tuple[bytes, str, str], Place | None] = {}

    def find(self, path: bytes, dialect: Dialect, model: str) -> Place | None:
        """``None``: nothing is kept of such calls.

        Args:
            path: as it was called, with its query.
            dialect: the caller's.
            model: after aliases.
        """
        at = (path, dialect.name, model)
        try:
            return self._known[at]
        except KeyError:
            pass
        rule = self._rules.find(f"/v1{dialect.path.decode()}", model)
        place = None
        if rule is not None:
            place = Place(rule, "\n".join((rule.name, rule.version, path.decode("latin-1"), dialect.name, model)))
        if len(self._known) >= _PLACES:
            self._known.clear()
        self._known[at] = place
        return place


def scope_of(tenant: str | None, fields: dict[bytes, bytes]) -> str:
    """Whose answers these are: a tenant's; where none is known, those of whoever has this credential for the engine."""
    if tenant is not None:
        return scope_of_tenant(tenant)
    secret = b"\n".join([fields.get(name, b"") for name in _CREDENTIALS])
    return f"credential:{blake2b(secret, digest_size=_DIGEST_BYTES).hexdigest()}"


def variant(route: str, dialect: Dialect, fields: dict[bytes, bytes]) -> str:
    """The route, with those headers that an engine may answer differently to."""
    own = dialect.own_fields & fields.keys()
    if not own:
        return route
    return "\n".join([route, *[f"{name!r}: {fields[name]!r}" for name in sorted(own)]])
