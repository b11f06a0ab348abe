"""The channel between workers of several machines: a stream in Redis or Valkey that all write to and all follow."""

import asyncio
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, cast

from headway.gateway.redis_client import open_redis
from headway.gateway.whereabouts import Hears

_LOG: Final = logging.getLogger(__name__)
_TIMEOUT_SECONDS: Final = 2.0
_BLOCK_MILLISECONDS: Final = 500
"""How long one look waits for something to be told: well below the timeout, and the longest that closing takes."""
_REST_SECONDS: Final = 1.0
"""How long a Redis that could not be used is left alone."""
_KEPT: Final = 1_000
"""Messages in the stream, of at most 50 KiB each: a worker that comes later begins with them."""
_TTL_SECONDS: Final = 3600
_AT_ONCE: Final = 64
_WAITING: Final = 64
"""Messages on their way to a slow Redis; beyond, they are dropped."""
_BEGINNING: Final = b"0"
_FIELD: Final = b"m"


class RedisChannel:
    """A `Channel` of machines that share a seed of digests (`RedisShelf.seed`) and run the same Python.

    Args:
        url: e.g. ``redis://127.0.0.1:6379/2``.
        prefix: before the name in there.

    Raises:
        MissingExtraError: the client is not installed.
        BadInputError: the URL is none.
    """

    def __init__(self, url: str, *, prefix: str = "headway-tasks") -> None:
        self._redis: Any = open_redis(url, _TIMEOUT_SECONDS, "Tasks in Redis")
        self._name = f"{{{prefix}}}:{sys.implementation.cache_tag}:whereabouts"
        self._writing = ThreadPoolExecutor(1, "whereabouts")
        self._waiting = 0
        self._closing = threading.Event()
        self._reader: threading.Thread | None = None
        self.trouble: str | None = None

    def open(self, hears: Hears) -> None:
        """As `Channel.open`."""
        loop = asyncio.get_running_loop()
        self._reader = threading.Thread(target=self._follow, args=(loop, hears), name="whereabouts", daemon=True)
        self._reader.start()

    def tell(self, message: bytes) -> bool:
        """As `Channel.tell`."""
        if self._waiting >= _WAITING or self.trouble is not None:
            return False
        self._waiting += 1
        loop = asyncio.get_running_loop()
        loop.run_in_executor(self._writing, partial(self._add, message)).add_done_callback(self._done)
        return True

    async def close(self) -> None:
        """As `Channel.close`."""
        self._closing.set()
        if self._reader is not None:
            await asyncio.to_thread(self._reader.join)
        self._writing.shutdown(wait=True, cancel_futures=True)
        self._redis.close()

    def _done(self, future: "asyncio.Future[None]") -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # looked at: that Redis is away is found out, and told, by who follows it

    def _turned(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            _LOG.warning("whereabouts: where other workers send calls is not known for now: %s", trouble)
        elif trouble is None and self.trouble is not None:
            _LOG.info("whereabouts: where other workers send calls is known again")
        self.trouble = trouble

    # --- on the threads

    def _add(self, message: bytes) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.xadd(self._name, {_FIELD: message}, maxlen=_KEPT, approximate=True)
        pipeline.expire(self._name, _TTL_SECONDS)
        pipeline.execute()

    def _follow(self, loop: asyncio.AbstractEventLoop, hears: Hears) -> None:
        """Pass on what is added. After a trouble all that is there, for Redis may have lost it and begun anew."""
        from redis import RedisError  # noqa: PLC0415 - only where it is used

        last, well = _BEGINNING, True
        while not self._closing.is_set():
            try:
                found = self._redis.xread({self._name: last}, count=_AT_ONCE, block=_BLOCK_MILLISECONDS)
            except (RedisError, OSError) as error:
                if well:
                    loop.call_soon_threadsafe(self._turned, f"Redis cannot be used: {error}")
                last, well = _BEGINNING, False
                self._closing.wait(_REST_SECONDS)
                continue
            if not well:
                well = True
                loop.call_soon_threadsafe(self._turned, None)
            for _, entries in cast("list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]", found or []):
                for number, fields in entries:
                    last = number
                    loop.call_soon_threadsafe(hears, fields.get(_FIELD, b""))
