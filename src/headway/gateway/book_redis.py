"""The book of limits in Redis or Valkey: shared by workers on several machines; each step is one atomic script."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, cast

import msgspec

from headway.core.errors import StoreError
from headway.gateway.redis_client import open_redis
from headway.policy.limits.book import (
    LEASE_SECONDS,
    RATE_SECONDS,
    SHARE,
    USABLE_SECONDS,
    Exchange,
    LeftError,
    Reply,
    Standing,
    Use,
)

_KEPT_SECONDS: Final = 100 * 24 * 3600
"""Longer than the longest window, a month."""
_PATIENCE_SECONDS: Final = 2.0

_COMMON: Final = f"""
local RATE, LEASE, USABLE, SHARE, KEPT = {RATE_SECONDS}, {LEASE_SECONDS}, {USABLE_SECONDS}, {SHARE}, {_KEPT_SECONDS}
local prefix, holder, now = KEYS[1], ARGV[1], tonumber(ARGV[2])
if not now then
  local t = redis.call('TIME')
  now = tonumber(t[1]) + tonumber(t[2]) / 1000000
end
local function whole(n) return string.format('%.0f', n) end
local function total(counter) return prefix .. ':total:' .. counter end
local function holding(counter) return prefix .. ':holding:' .. counter end
local function rate(counter) return prefix .. ':rate:' .. counter end
local function worker(id) return prefix .. ':holder:' .. id end
local function holdings(id) return prefix .. ':holdings:' .. id end
local function opened(counter)
  local key = total(counter)
  redis.call('HSETNX', key, 'since', string.format('%.6f', now))
  redis.call('EXPIRE', key, KEPT)
  return key
end
local function add(counter, amount) redis.call('HINCRBY', opened(counter), 'used', whole(amount)) end
local function hold(counter, amount)
  if amount == 0 then
    redis.call('HDEL', holding(counter), holder)
    redis.call('SREM', holdings(holder), counter)
  else
    redis.call('HSET', holding(counter), holder, whole(amount))
    redis.call('EXPIRE', holding(counter), KEPT)
    redis.call('SADD', holdings(holder), counter)
    redis.call('EXPIRE', holdings(holder), KEPT)
  end
end
local function used(counter) return tonumber(redis.call('HGET', total(counter), 'used') or '0') end
local function held(counter, living)
  local sum, all = 0, redis.call('HGETALL', holding(counter))
  for i = 1, #all, 2 do
    local seen = living and tonumber(redis.call('HGET', worker(all[i]), 'seen') or '0')
    if not living or seen >= now - LEASE then sum = sum + tonumber(all[i + 1]) end
  end
  return sum
end
"""

_JOIN: Final = (
    _COMMON
    + """
for _, counter in ipairs(redis.call('SMEMBERS', holdings(holder))) do redis.call('HDEL', holding(counter), holder) end
redis.call('DEL', holdings(holder))
redis.call('HSET', worker(holder), 'number', 0, 'settled', 0, 'seen', string.format('%.6f', now))
redis.call('EXPIRE', worker(holder), KEPT)
"""
)

_EXCHANGE: Final = (
    _COMMON
    + """
local exchange = cmsgpack.unpack(ARGV[3])
local number = redis.call('HGET', worker(holder), 'number')
if not number then return false end
if exchange.number > tonumber(number) then
  for _, one in ipairs(exchange.held) do
    if one[3] > 0 then add(one[1], one[3]) end
    hold(one[1], one[4])
  end
  for _, one in ipairs(exchange.corrections) do
    local there = redis.call('HGET', rate(one[1]), one[2])
    if there then redis.call('HSET', rate(one[1]), one[2], whole(math.max(tonumber(there) - one[3], 0))) end
  end
  redis.call('HSET', worker(holder), 'number', whole(exchange.number), 'settled', whole(exchange.settled))
end
redis.call('HSET', worker(holder), 'seen', string.format('%.6f', now))
redis.call('EXPIRE', worker(holder), KEPT)
local first = {}
for _, counter in ipairs(exchange.warned) do
  if redis.call('HSETNX', opened(counter), 'warned', 1) == 1 then first[#first + 1] = counter end
end

local function portion(left, least, need)
  if left < least then return 0 end
  return math.min(left, math.max(need, math.floor(left / SHARE)))
end
local function draw(want, spent, taken)
  local given = portion(want[3] - spent - taken, want[4], want[5])
  if given > 0 then
    hold(want[1], tonumber(redis.call('HGET', holding(want[1]), holder) or '0') + given)
  end
  return {whole(given), whole(spent), whole(taken + given), '0', '', '0'}
end
local function draw_rate(want)
  local key, at = rate(want[1]), math.floor(now + USABLE) + 1
  local slots, sum, later = {}, 0, false
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local second, amount = tonumber(all[i]), tonumber(all[i + 1])
    if second <= now - RATE then
      redis.call('HDEL', key, all[i])
    else
      slots[#slots + 1] = {second, amount}
      sum = sum + amount
      later = later or second > at
    end
  end
  if later then
    redis.call('DEL', key)
    redis.call('HSET', key, whole(at), whole(sum))
    slots = {{at, sum}}
  end
  local left = want[3] - sum
  local given = portion(left, want[4], want[5])
  local wait = ''
  if given > 0 then
    redis.call('HINCRBY', key, whole(at), whole(given))
  else
    table.sort(slots, function(a, b) return a[1] < b[1] end)
    local missing = want[4] - left
    for _, slot in ipairs(slots) do
      missing = missing - slot[2]
      if missing <= 0 then
        wait = string.format('%.6f', math.max(slot[1] + RATE - now, 0))
        break
      end
    end
  end
  redis.call('EXPIRE', key, RATE * 2)
  return {whole(given), whole(sum + given), '0', whole(at), wait, '0'}
end

local standings = {}
for i, want in ipairs(exchange.wants) do
  if want[2] == 'total' then
    standings[i] = draw(want, used(want[1]), held(want[1], false))
  elseif want[2] == 'gauge' then
    standings[i] = draw(want, 0, held(want[1], true))
  elseif want[2] == 'rate' then
    standings[i] = draw_rate(want)
  else
    local since = tonumber(redis.call('HGET', opened(want[1]), 'since'))
    standings[i] = {'0', '0', '0', '0', '', string.format('%.6f', math.max(now - since, 0))}
  end
end
return {standings, first}
"""
)

_LEAVE: Final = (
    _COMMON
    + """
if redis.call('DEL', worker(holder)) == 0 then return 0 end
for _, counter in ipairs(redis.call('SMEMBERS', holdings(holder))) do redis.call('HDEL', holding(counter), holder) end
redis.call('DEL', holdings(holder))
for counter, amount in pairs(cmsgpack.unpack(ARGV[3])) do add(counter, amount) end
return 1
"""
)

_USES: Final = (
    _COMMON
    + """
local found = {}
for i, counter in ipairs(cmsgpack.unpack(ARGV[3])) do found[i] = {whole(used(counter)), whole(held(counter, false))} end
return found
"""
)


class RedisBook:
    """Counters in Redis or Valkey.

    It is worth what the server's own memory is worth: let the server append to a file (``appendonly yes``), and let
    it refuse to forget (``maxmemory-policy noeviction``). Rates run on the server's clock, so that no machine's own
    matters.

    Args:
        url: e.g. ``redis://127.0.0.1:6379/0``.
        prefix: before every name in there, so that several installations can share a server.
        now: seconds; ``None``: the server's clock.

    Raises:
        MissingExtraError: the client is not installed.
        BadInputError: the URL is none.
    """

    def __init__(self, url: str, *, prefix: str = "headway", now: Callable[[], float] | None = None) -> None:
        self._redis = open_redis(url, _PATIENCE_SECONDS, "Limits in Redis")
        self._prefix = f"{{{prefix}}}"
        self._now = now
        self._join = self._redis.register_script(_JOIN)
        self._exchange = self._redis.register_script(_EXCHANGE)
        self._leave = self._redis.register_script(_LEAVE)
        self._uses = self._redis.register_script(_USES)

    def join(self, holder: str) -> None:
        """A worker begins."""
        self._run(self._join, holder)

    def exchange(self, holder: str, exchange: Exchange) -> Reply:
        """Take a report, then answer wishes in order."""
        told = {
            "number": exchange.number,
            "settled": exchange.settled,
            "held": [(one.counter, one.kind, one.used, one.held) for one in exchange.held],
            "corrections": [(one.counter, one.at, one.unused) for one in exchange.corrections],
            "warned": exchange.warned,
            "wants": [(want.counter, want.kind, want.limit, want.least, want.need) for want in exchange.wants],
        }
        answer = self._run(self._exchange, holder, msgspec.msgpack.encode(told))
        if answer is None:
            raise LeftError(holder)
        standings, first = cast("tuple[list[list[bytes]], list[bytes]]", answer)
        return Reply(tuple(map(_standing, standings)), tuple(counter.decode() for counter in first))

    def settled(self, holder: str) -> int | None:
        """How many settlements of this holder are in the book; ``None``: it has left."""
        with _explained():
            found = cast("bytes | None", self._redis.hget(f"{self._prefix}:holder:{holder}", "settled"))
        return None if found is None else int(found)

    def leave(self, holder: str, charges: dict[str, int]) -> bool:
        """A worker has ended."""
        return bool(self._run(self._leave, holder, msgspec.msgpack.encode(charges)))

    def uses(self, counters: tuple[str, ...]) -> tuple[Use, ...]:
        """Where totals stand."""
        found = cast("list[list[bytes]]", self._run(self._uses, "", msgspec.msgpack.encode(counters)))
        return tuple(Use(int(used), int(held)) for used, held in found)

    def forget(self, untouched: float) -> None:
        """Nothing to do: what is not touched for 100 days goes by itself."""
        del untouched

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _run(self, script: Any, holder: str, *arguments: bytes) -> object:  # noqa: ANN401 - the client has no type for it
        now = "" if self._now is None else f"{self._now():.6f}"
        with _explained():
            return script(keys=[self._prefix], args=[holder, now, *arguments])


@contextmanager
def _explained() -> Generator[None]:
    from redis import RedisError  # noqa: PLC0415 - only where it is used

    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreError(
            f"Redis, which holds the limits, cannot be used: {error}.", fix="Check that it runs and has memory left."
        ) from error


def _standing(fields: list[bytes]) -> Standing:
    given, used, held, at, wait, age = fields
    return Standing(int(given), int(used), int(held), int(at), float(wait) if wait else None, float(age))
