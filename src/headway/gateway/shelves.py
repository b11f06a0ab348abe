"""Where workers leave what they tell each other: in the memory of the process that looks after them, or in Redis."""

import asyncio
import secrets
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, cast

import msgspec

from headway.core.errors import StoreError
from headway.gateway.line import Line
from headway.gateway.redis_client import open_redis

MAX_BYTES: Final = 64 << 20
_OVERHEAD_BYTES: Final = 200
"""Of a key and its list."""
_SAME: Final = 16
"""Kept under one key, the latest."""
PUT: Final = "told"
FIND: Final = "who knows"
_FIND_SECONDS: Final = 1.0
_TIMEOUT_SECONDS: Final = 0.5
_WAITING: Final = 1024
_THREADS: Final = 2
_SEED_BITS: Final = 32


class MemoryShelf:
    """In this process; what was left or looked for longest ago goes first."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._lists: OrderedDict[str, tuple[bytes, ...]] = OrderedDict()
        self.bytes = 0

    def put(self, keys: tuple[str, ...], told: bytes) -> None:
        """Leave it under each of these keys."""
        for key in keys:
            before = self._lists.pop(key, ())
            after = self._lists[key] = (*before[1 - _SAME :], told)
            self.bytes += _size(key, after) - (_size(key, before) if before else 0)
        while self.bytes > self._limit:
            self.bytes -= _size(*self._lists.popitem(last=False))

    def find(self, keys: tuple[str, ...]) -> list[bytes]:
        """What was left under these keys, each once."""
        found = dict[bytes, None]()
        for key in keys:
            if key in self._lists:
                self._lists.move_to_end(key)
                found |= dict.fromkeys(self._lists[key])
        return list(found)

    def serve(self, line: Line) -> None:
        """Let the worker at the other end of a line use it."""
        line.on_news(PUT, lambda payload: self.put(*_read_put(payload)))
        line.on_question(FIND, self._answer)

    async def _answer(self, payload: bytes) -> bytes:
        return msgspec.msgpack.encode(self.find(_read_keys(payload)))


class LineShelf:
    """The shelf at the other end of a line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def put(self, keys: tuple[str, ...], told: bytes) -> None:
        """As `Shelf.put`."""
        self._line.tell(PUT, msgspec.msgpack.encode((keys, told)))

    async def find(self, keys: tuple[str, ...]) -> list[bytes]:
        """As `Shelf.find`."""
        return _read_found(await self._line.ask(FIND, msgspec.msgpack.encode(keys), _FIND_SECONDS))

    def close(self) -> None:
        """The line is another's."""


class RedisShelf:
    """In Redis or Valkey, for workers on several machines. Let the server forget (``maxmemory-policy volatile-lru``).

    Digests of Python's own are comparable where the seed is the same, which all take from there, and the Python is.

    Args:
        url: e.g. ``redis://127.0.0.1:6379/2``.
        ttl: seconds that a call is remembered.
        prefix: before every name in there.

    Raises:
        MissingExtraError: the client is not installed.
        BadInputError: the URL is none.
    """

    def __init__(self, url: str, ttl: float, *, prefix: str = "headway-tasks") -> None:
        self._redis: Any = open_redis(url, _TIMEOUT_SECONDS, "Tasks in Redis")
        self._prefix = f"{{{prefix}}}:{sys.implementation.cache_tag}:"
        self._ttl = max(1, round(ttl))
        self._threads = ThreadPoolExecutor(_THREADS, "shared tasks")
        self._waiting = 0

    def seed(self) -> int:
        """The seed of all digests in there.

        Raises:
            StoreError: Redis cannot be used.
        """
        from redis import RedisError  # noqa: PLC0415 - only where it is used

        name = f"{self._prefix}seed"
        try:
            self._redis.set(name, secrets.randbits(_SEED_BITS), nx=True)
            return int(cast("bytes", self._redis.get(name)))
        except (RedisError, OSError) as error:
            raise _unusable(error) from error

    def put(self, keys: tuple[str, ...], told: bytes) -> None:
        """As `Shelf.put`."""
        if self._waiting < _WAITING:
            self._waiting += 1
            loop = asyncio.get_running_loop()
            loop.run_in_executor(self._threads, partial(self._put, keys, told)).add_done_callback(self._done)

    async def find(self, keys: tuple[str, ...]) -> list[bytes]:
        """As `Shelf.find`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(self._find, keys))

    def close(self) -> None:
        """Close the connections; what is not left yet is not."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._redis.close()

    def _done(self, future: "asyncio.Future[None]") -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # looked at: that Redis is away is found out, and told, by who asks it

    def _put(self, keys: tuple[str, ...], told: bytes) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            name = self._prefix + key
            pipeline.rpush(name, told)
            pipeline.ltrim(name, -_SAME, -1)
            pipeline.expire(name, self._ttl)
        pipeline.execute()

    def _find(self, keys: tuple[str, ...]) -> list[bytes]:
        from redis import RedisError  # noqa: PLC0415 - only where it is used

        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.lrange(self._prefix + key, 0, -1)
        try:
            lists = cast("list[list[bytes]]", pipeline.execute())
        except (RedisError, OSError) as error:
            raise _unusable(error) from error
        return list(dict.fromkeys(one for found in lists for one in found))


def seed_in(url: str, ttl: float) -> int:
    """As `RedisShelf.seed`, of one that is opened for that alone."""
    shelf = RedisShelf(url, ttl)
    try:
        return shelf.seed()
    finally:
        shelf.close()


def _unusable(error: Exception) -> StoreError:
    return StoreError(f"Redis, which holds tasks, cannot be used: {error}.", fix="Check that it runs.")


def _size(key: str, told: tuple[bytes, ...]) -> int:
    return _OVERHEAD_BYTES + len(key) + sum(map(len, told))


_read_put: Final = msgspec.msgpack.Decoder(tuple[tuple[str, ...], bytes]).decode
_read_keys: Final = msgspec.msgpack.Decoder(tuple[str, ...]).decode
_read_found: Final = msgspec.msgpack.Decoder(list[bytes]).decode
