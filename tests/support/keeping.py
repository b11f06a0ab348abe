"""A gateway that keeps answers, for tests."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headway.gateway.caches.opening import Caching, Opening, open_cache
from headway.policy.cache.rules import CacheRule

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Vector


def keeping(
    *rules: CacheRule,
    limit: int = 1 << 20,
    redis: str | None = None,
    patience: float = 1.0,
    embed: "Callable[[str], Vector] | None" = None,
) -> Opening:
    """Answers kept by these rules, without any by one for all chat completions."""
    caching = Caching(rules=rules or (CacheRule(name="all"),), limit=limit, redis=redis, patience=patience)
    return partial(open_cache, caching, embed)
