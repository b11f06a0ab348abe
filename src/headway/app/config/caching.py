"""From the cache as a person wrote it to the one that is opened."""

from collections.abc import Mapping

from headway.app.config import written as tables
from headway.core.errors import BadInputError
from headway.gateway.caches.opening import Caching
from headway.policy.cache.rules import CacheRule, CacheRules


def caching_of(written: tables.Cache | None, environment: Mapping[str, str]) -> Caching | None:
    """What is kept; ``None``: nothing.

    Args:
        written: the table ``[cache]``, if there is one.
        environment: where the address of Redis may be.

    Raises:
        BadInputError: two rules have one name, or the address's variable is not set.
    """
    if written is None:
        return None
    rules = CacheRules(map(_rule, written.rules))
    return Caching(
        rules=rules.all,
        limit=written.bytes,
        questions=written.questions,
        redis=_redis(written, environment),
        patience=written.patience,
    )


def _rule(written: tables.CacheRule) -> CacheRule:
    return CacheRule(
        name=written.name,
        path=written.path,
        models=tuple(written.models),
        mode=written.mode,
        ttl=written.ttl,
        stale=written.stale,
        wait=written.wait,
        tags=frozenset(written.tags),
        version=written.version,
        largest=written.largest,
        threshold=written.threshold,
        error=written.error,
    )


def _redis(written: tables.Cache, environment: Mapping[str, str]) -> str | None:
    if written.redis_env is None:
        return written.redis
    url = environment.get(written.redis_env)
    if not url:
        raise BadInputError(
            f"The cache needs the address of Redis, and the environment variable {written.redis_env} is not set.",
            fix=f"Put it there: export {written.redis_env}=redis://…",
        )
    return url
