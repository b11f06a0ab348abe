"""What workers tell each other through Redis, through a real server; and when it is away."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from services import clear_redis, own_name, redis_url

from headway.core.errors import BadInputError, StoreError
from headway.gateway.shelves import RedisShelf


@pytest.fixture
async def prefix() -> AsyncGenerator[str]:
    name = own_name()
    redis_url()
    yield name
    clear_redis(name)


async def left(shelf: RedisShelf, keys: tuple[str, ...], told: bytes) -> None:
    """Until it is there."""
    shelf.put(keys, told)
    async with asyncio.timeout(10):
        while told not in await shelf.find(keys):
            pass


async def test_one_finds_what_another_left_each_thing_once(prefix: str) -> None:
    one, two = RedisShelf(redis_url(), 60, prefix=prefix), RedisShelf(redis_url(), 60, prefix=prefix)
    assert one.seed() == two.seed()
    await left(one, ("a", "b"), b"1")
    await left(one, ("b",), b"2")
    assert await two.find(("a", "b", "c")) == [b"1", b"2"]
    for number in range(20):
        await left(one, ("many",), b"%d" % number)
    assert await two.find(("many",)) == [b"%d" % number for number in range(4, 20)]
    one.close()
    two.close()


async def test_what_is_left_goes_by_itself(prefix: str) -> None:
    redis: Any = pytest.importorskip("redis", reason="the extra `redis` is not installed")
    shelf = RedisShelf(redis_url(), 77, prefix=prefix)
    await left(shelf, ("a",), b"1")
    client = redis.Redis.from_url(redis_url())
    (name,) = [name for name in client.scan_iter(f"{{{prefix}}}*") if name.endswith(b":a")]
    assert 0 < client.ttl(name) <= 77
    client.close()
    shelf.close()


async def test_a_redis_that_is_away_is_an_error_of_whoever_asks_and_of_nobody_who_tells() -> None:
    pytest.importorskip("redis", reason="the extra `redis` is not installed")
    shelf = RedisShelf("redis://127.0.0.1:1/0", 60)
    shelf.put(("a",), b"1")
    with pytest.raises(StoreError, match="cannot be used"):
        await shelf.find(("a",))
    with pytest.raises(StoreError, match="cannot be used"):
        shelf.seed()
    shelf.close()
    with pytest.raises(BadInputError, match="no address of a Redis"):
        RedisShelf("http://127.0.0.1", 60)
