"""What of a configuration that was read again takes effect at once, and what only when the gateway is started anew."""

from typing import Final

from msgspec import Struct, structs

from headway.app.service import Service
from headway.gateway.caches.opening import Caching
from headway.gateway.door_opening import Keeping

_WORDS: Final = {
    "embedded": "[embedded]",
    "host": "gateway.host",
    "port": "gateway.port",
    "workers": "gateway.workers",
    "allow_hosts": "gateway.allow_hosts",
    "admin_port": "gateway.admin_port",
    "store": "gateway.store",
    "keep_text": "gateway.keep_text",
    "policy": "gateway.policy",
    "scheduling": "[schedule]",
    "retries": "[retries]",
    "breakers": "[breakers]",
    "hedging": "[hedging]",
    "fanout": "[fanout]",
    "tasks": "[tasks]",
    "limits": "[gateway.limits]",
    "drain": "gateway.drain",
    "export": "[export]",
    "log": "log.format",
    "log_calls": "log.calls",
    "upstreams": "[[replicas]]",
    "catalog": "[models] and [tiers]",
    "prices": "[prices]",
}
"""How a person knows what is served."""
_AT_ONCE: Final = frozenset({"upstreams", "catalog", "policy", "prices", "drain"})


class Changes(Struct, frozen=True):
    """What is to be served from now on."""

    service: Service
    """With all that takes effect at once, and nothing else."""
    made: tuple[str, ...]
    """What takes effect, as a person knows it."""
    restart: tuple[str, ...]
    """What does not until the gateway is started anew."""


def changes(old: Service, new: Service, *, policy: bool = True) -> Changes:
    """What becomes of a gateway that serves ``old`` and is to serve ``new``; ``policy``: whether that may change."""
    made, restart, taken = list[str](), list[str](), dict[str, object]()
    at_once = _AT_ONCE if policy else _AT_ONCE - {"policy"}
    for name in Service.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        word = _WORDS.get(name, name)
        if name in at_once:
            made.append(word)
            taken[name] = after
        elif name == "keeping":
            taken[name] = _tenants(old.keeping, new.keeping, made, restart)
        elif name == "caching":
            taken[name] = _rules(old.caching, new.caching, made, restart)
        else:
            restart.append(word)
    return Changes(structs.replace(old, **taken), tuple(made), tuple(restart))


def _tenants(old: Keeping | None, new: Keeping | None, made: list[str], restart: list[str]) -> Keeping | None:
    """Tenants may change; whether callers need keys, and where these are, may not."""
    if old is None or new is None:
        restart.append("[keys]")
        return old
    if structs.replace(new, tenants=old.tenants) != old:
        restart.append("[keys]")
    if new.tenants != old.tenants:
        made.append("[tenants]")
    return structs.replace(old, tenants=new.tenants)


def _rules(old: Caching | None, new: Caching | None, made: list[str], restart: list[str]) -> Caching | None:
    """The rules of a cache may change; that there is one, and what it is made of, may not."""
    if old is None or new is None or new.needs_meanings != old.needs_meanings:
        restart.append("[cache]")
        return old
    if structs.replace(new, rules=old.rules) != old:
        restart.append("[cache]")
    if new.rules != old.rules:
        made.append("[[cache.rules]]")
    return structs.replace(old, rules=new.rules)
