"""Shared answers in Redis or Valkey. What is read again is looked at again: Redis is no wall between tenants."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import ceil
from typing import Any, Final, cast

import msgspec

from headway.core.errors import StoreError
from headway.gateway.caches.sharing import News, Portable
from headway.gateway.redis_client import open_redis
from headway.policy.cache.keys import CacheKey

_TIMEOUT_SECONDS: Final = 0.5
"""Of one exchange. Calls wait less: they go on without."""
_DROPS: Final = 1000
"""That are remembered; what was kept before the oldest of them is given no more."""

_COMMON: Final = """
local answer, drops = KEYS[1], KEYS[2]
local function place(id)
  local ms, n = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(n)
end
local function dropped(at, labels)
  local first = redis.call('XRANGE', drops, '-', '+', 'COUNT', 1)[1]
  if not first then return true end
  local oldest, n = place(first[1])
  local own, m = place(at)
  if oldest > own or (oldest == own and n > m) then return true end
  local mine = {}
  for _, label in ipairs(cmsgpack.unpack(labels)) do mine[label] = true end
  for _, drop in ipairs(redis.call('XRANGE', drops, '(' .. at, '+')) do
    for _, label in ipairs(cmsgpack.unpack(drop[2][2])) do
      if mine[label] then return true end
    end
  end
  return false
end
"""
"""The row of drops is the only truth about them: an answer is given if it is known of every drop since that it was not
meant. So no index can be out of step or evicted, and where the row itself is gone nothing is given."""

_PUT: Final = (
    _COMMON
    + """
local seen, labels, body, life = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if dropped(seen, labels) then return 0 end
local at = redis.call('XREVRANGE', drops, '+', '-', 'COUNT', 1)[1][1]
redis.call('DEL', answer)
redis.call('HSET', answer, 'at', at, 'labels', labels, 'body', body)
redis.call('PEXPIRE', answer, life)
return 1
"""
)

_GET: Final = (
    _COMMON
    + """
local found = redis.call('HMGET', answer, 'at', 'labels', 'body')
if not (found[1] and found[2] and found[3]) then return false end
if dropped(found[1], found[2]) then
  redis.call('UNLINK', answer)
  return false
end
return {found[3], redis.call('PTTL', answer)}
"""
)

_decoder: Final = msgspec.msgpack.Decoder(Portable)


class RedisAnswers:
    """An `AnswerStore` in Redis or Valkey.

    Let the server forget what expires (``maxmemory-policy volatile-lru``); so it should be another than the one that
    holds limits, which must forget nothing.

    Args:
        url: e.g. ``redis://127.0.0.1:6379/1``.
        prefix: before every name in there, so that several installations can share a server.

    Raises:
        MissingExtraError: the client is not installed.
        BadInputError: the URL is none.
    """

    def __init__(self, url: str, *, prefix: str = "headway-cache") -> None:
        self._redis = open_redis(url, _TIMEOUT_SECONDS, "A cache in Redis")
        self._prefix = f"{{{prefix}}}"
        self._drops = f"{self._prefix}:drops"
        self._put = self._redis.register_script(_PUT)
        self._get = self._redis.register_script(_GET)

    def get(self, key: CacheKey) -> tuple[Portable, float] | None:
        """As `AnswerStore.get`; the server's clock says how much of it is left."""
        with _explained():
            found = cast("tuple[bytes, int] | None", self._get(keys=[self._name(key), self._drops]))
        if found is None or found[1] <= 0:
            return None
        body, left = found
        try:
            return _decoder.decode(body), left / 1000
        except msgspec.DecodeError:
            return None  # another version's, or nobody knows whose

    def put(self, key: CacheKey, answer: Portable, seen: str) -> bool:
        """As `AnswerStore.put`, in one step."""
        life = ceil((answer.fresh_seconds + answer.stale_seconds) * 1000)
        labels = msgspec.msgpack.encode(sorted(answer.labels))
        arguments = [seen, labels, msgspec.msgpack.encode(answer), life]
        with _explained():
            return bool(self._put(keys=[self._name(key), self._drops], args=arguments))

    def drop(self, labels: frozenset[str]) -> None:
        """As `AnswerStore.drop`."""
        with _explained():
            self._told(labels)

    def news(self, seen: str) -> News:
        """As `AnswerStore.news`."""
        with _explained():
            first, last = self._end(self._redis.xrange), self._end(self._redis.xrevrange)
            if first is None or last is None:
                return News(self._told(frozenset()), frozenset() if not seen else None)
            if not seen or seen == last:
                return News(last, frozenset())
            if _place(first) > _place(seen):
                return News(last, None)
            rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", self._redis.xrange(self._drops, f"({seen}"))
        if not rows:
            return News(last, None)  # the row was lost and begun anew
        found = [msgspec.msgpack.decode(row[b"labels"], type=list[str]) for _, row in rows]
        return News(rows[-1][0].decode(), frozenset(label for labels in found for label in labels))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _name(self, key: CacheKey) -> str:
        return f"{self._prefix}:answer:{key.hex()}"

    def _told(self, labels: frozenset[str]) -> str:
        """Write a drop down; where in the row it stands."""
        row: Any = {"labels": msgspec.msgpack.encode(sorted(labels))}
        return cast("bytes", self._redis.xadd(self._drops, row, maxlen=_DROPS, approximate=False)).decode()

    def _end(self, read: Callable[..., Any]) -> str | None:
        """Where the row of drops begins or ends; ``None``: there is none."""
        rows = cast("list[tuple[bytes, object]]", read(self._drops, count=1))
        return rows[0][0].decode() if rows else None


def _place(identifier: str) -> tuple[int, int]:
    milliseconds, _, number = identifier.partition("-")
    return int(milliseconds), int(number)


@contextmanager
def _explained() -> Generator[None]:
    from redis import RedisError  # noqa: PLC0415 - only where it is used

    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreError(
            f"Redis, which shares answers, cannot be used: {error}.", fix="Check that it runs; calls go on without."
        ) from error
