"""A cache as it was configured."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from headway.core.clock import Clock
from headway.gateway.caches.meanings import Meanings
from headway.gateway.caches.sharing import Sharing
from headway.gateway.caches.station import PATIENCE_SECONDS, ResponseCache
from headway.gateway.caches.store_redis import RedisAnswers
from headway.gateway.deadlines import Deadlines
from headway.gateway.unforeseen import Unforeseen
from headway.policy.cache.rules import CacheRule, CacheRules

if TYPE_CHECKING:
    from headway.policy.cache.nearest import Vector

Opening = Callable[[Clock, Deadlines, Unforeseen], ResponseCache | None]
"""`open_cache` with all but what is the gateway's own."""


class Caching(Struct, frozen=True, kw_only=True):
    """What is kept, where, and for which calls."""

    rules: tuple[CacheRule, ...] = ()
    limit: int = 64 << 20
    """Bytes of all answers of this process."""
    questions: int = 32 << 20
    """Bytes of all questions of one rule that compares by meaning."""
    redis: str | None = None
    """URL; ``None``: nothing is shared."""
    patience: float = PATIENCE_SECONDS
    """Seconds that a call waits at most for Redis or for its question to be understood."""

    @property
    def needs_meanings(self) -> bool:
        """Whether a model that embeds questions has to be loaded."""
        return any(rule.mode in {"semantic", "shadow"} for rule in self.rules)


def open_cache(
    caching: Caching,
    embed: "Callable[[str], Vector] | None",
    clock: Clock,
    deadlines: Deadlines,
    unforeseen: Unforeseen,
) -> ResponseCache | None:
    """The cache, not yet started; ``None``: no rule keeps anything.

    Args:
        caching: what is configured.
        embed: a text's meaning; needed where `Caching.needs_meanings`, called on a thread of the cache's own.
        clock: the gateway's.
        deadlines: the gateway's.
        unforeseen: the gateway's.

    Raises:
        HeadwayError: the rules contradict each other, or Redis cannot be used as it is named.
    """
    rules = CacheRules(caching.rules)
    if all(rule.mode == "off" for rule in rules.all):
        return None
    return ResponseCache(
        rules,
        caching.limit,
        clock=clock,
        deadlines=deadlines,
        unforeseen=unforeseen,
        meanings=Meanings(embed, caching.questions) if embed is not None and caching.needs_meanings else None,
        sharing=None if caching.redis is None else Sharing(RedisAnswers(caching.redis), clock),
        patience=caching.patience,
    )
