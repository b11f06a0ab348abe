"""What of a configuration that was read again takes effect at once."""

from pathlib import Path

import pytest

from headway.app.changes import changes
from headway.app.service import Service
from headway.core.access import Tenant, TenantId
from headway.core.fleet import Replica, ReplicaId
from headway.core.money import Price
from headway.gateway.caches.opening import Caching
from headway.gateway.door_opening import Keeping
from headway.policy.cache.rules import CacheRule
from headway.policy.models.catalog import Alias, catalog

A = Replica(id=ReplicaId("a"), url="http://127.0.0.1:1/v1")
ACME = Tenant(id=TenantId("acme"))
RULES = (CacheRule(name="x"),)
OLD = Service(upstreams=(A,), keeping=Keeping(keys="k.db"), caching=Caching(rules=RULES))


def test_nothing_changed_changes_nothing() -> None:
    found = changes(OLD, OLD)
    assert (found.service, found.made, found.restart) == (OLD, (), ())


@pytest.mark.parametrize(
    ("new", "made"),
    [
        (Service(upstreams=(), keeping=OLD.keeping, caching=OLD.caching), "[[replicas]]"),
        (Service(upstreams=(A,), keeping=Keeping(keys="k.db", tenants=(ACME,)), caching=OLD.caching), "[tenants]"),
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=Caching()), "[[cache.rules]]"),
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=OLD.caching, policy="round-robin"), "gateway.policy"),
        (
            Service(upstreams=(A,), keeping=OLD.keeping, caching=OLD.caching, prices={"m": Price(input=1, output=1)}),
            "[prices]",
        ),
        (
            Service(
                upstreams=(A,),
                keeping=OLD.keeping,
                caching=OLD.caching,
                catalog=catalog([Alias(name="fast", models=("m",))], []),
            ),
            "[models] and [tiers]",
        ),
    ],
)
def test_what_can_change_in_place_does(new: Service, made: str) -> None:
    found = changes(OLD, new)
    assert (found.service, found.made, found.restart) == (new, (made,), ())


@pytest.mark.parametrize(
    ("new", "restart"),
    [
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=OLD.caching, port=9), "gateway.port"),
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=OLD.caching, workers=2), "gateway.workers"),
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=OLD.caching, store=Path("s.db")), "gateway.store"),
        (Service(upstreams=(A,), caching=OLD.caching), "[keys]"),
        (Service(upstreams=(A,), keeping=Keeping(keys="other.db"), caching=OLD.caching), "[keys]"),
        (Service(upstreams=(A,), keeping=OLD.keeping), "[cache]"),
        (Service(upstreams=(A,), keeping=OLD.keeping, caching=Caching(rules=RULES, limit=1)), "[cache]"),
    ],
)
def test_what_needs_a_restart_is_said_and_left_as_it_is(new: Service, restart: str) -> None:
    found = changes(OLD, new)
    assert (found.service, found.made, found.restart) == (OLD, (), (restart,))
