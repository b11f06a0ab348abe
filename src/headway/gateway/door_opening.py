"""The door as an operator describes it, opened: stores, tenants that the configuration names, prices."""

import time
from collections.abc import Mapping

from msgspec import Struct, structs

from headway.core.access import Tenant
from headway.core.clock import Clock
from headway.core.errors import NotFoundError
from headway.core.fleet import FleetView
from headway.core.money import Price
from headway.gateway.access import Access
from headway.gateway.door import Door, warn
from headway.gateway.fleet import LiveFleet
from headway.gateway.keys import Change, change_tenant, create_tenant
from headway.gateway.limiter import Limiter
from headway.gateway.registry import Registry
from headway.gateway.stores import intents_directory, open_book, open_registry
from headway.gateway.tariff import Tariff

_ACTOR = "configuration"
_MODELS = 1_000
"""Names remembered; callers choose them, so there is no end of them."""


class Keeping(Struct, frozen=True, kw_only=True):
    """Where keys are, where use is counted, and which tenants there shall be."""

    keys: str | None = None
    """A file or ``postgresql://…``; ``None``: the file in the user's data directory."""
    limits: str | None = None
    """A file or ``redis://…``; ``None``: the keys' file."""
    tenants: tuple[Tenant, ...] = ()


class OwnModels:
    """Models that replicas without a key of their own serve, and nobody else does: nobody is paid for them."""

    def __init__(self, fleet: LiveFleet) -> None:
        self._fleet = fleet
        self._view: FleetView | None = None
        self._known: dict[object, bool] = {}
        """By model, for as long as the fleet is what it was."""

    def __contains__(self, model: object) -> bool:
        """Whether all who serve ``model`` are engines of one's own; what nobody serves costs nothing either."""
        view = self._fleet.view()
        if view is not self._view or len(self._known) > _MODELS:
            self._view, self._known = view, {}
        known = self._known.get(model)
        if known is None:
            serving = [load.replica for load in view.loads if not load.replica.models or model in load.replica.models]
            known = self._known[model] = all(replica.api_key is None for replica in serving)
        return known


def open_door(keeping: Keeping, fleet: LiveFleet, prices: Mapping[str, Price], clock: Clock) -> Door:
    """The door, to be started; whoever starts it closes it.

    Raises:
        HeadwayError: a store cannot be opened, or a tenant cannot be what the configuration says.
    """
    registry = open_registry(keeping.keys)
    try:
        declare(registry, keeping.tenants, time.time())
        beside = None if keeping.keys is None or "://" in keeping.keys else keeping.keys
        where = keeping.limits or beside
        limiter = Limiter(open_book(where), intents_directory(where), clock, warn=warn)
    except BaseException:
        registry.close()
        raise
    return Door(Access(registry, clock), limiter, Tariff(prices, OwnModels(fleet)), clock)


def declare_tenants(keeping: Keeping) -> None:
    """`declare` those of the configuration, for all doors that are opened after.

    Raises:
        HeadwayError: as `declare`, or the registry cannot be opened.
    """
    registry = open_registry(keeping.keys)
    try:
        declare(registry, keeping.tenants, time.time())
    finally:
        registry.close()


def declare(registry: Registry, tenants: tuple[Tenant, ...], at: float) -> None:
    """Make the tenants that there are not yet, and change those that are otherwise; one that is switched off stays so.

    Raises:
        HeadwayError: the registry cannot be written, or a name has characters that names do not have.
    """
    change = Change(_ACTOR, at)
    for tenant in tenants:
        try:
            known = registry.tenant(tenant.id)
        except NotFoundError:
            create_tenant(registry, tenant, change)
            continue
        wanted = structs.replace(tenant, disabled=known.disabled)
        if wanted != known:
            change_tenant(registry, wanted, change)
