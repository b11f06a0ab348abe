"""Gateways that share their answers in a real Redis, which goes and comes back."""

import asyncio
from collections.abc import Callable

import pytest
from keeping import keeping
from own_redis import OwnRedis
from serving import Raw, Served, chat, serving

from headway.core.span import ModelCall
from headway.gateway.caches.figures import Shared
from headway.gateway.fake import FakeEngine
from headway.policy.cache.labels import Drop
from headway.policy.cache.rules import CacheRule

RULE = CacheRule(name="all", tags=frozenset({"docs"}))


async def ask(served: Served, word: str, key: str = "a") -> Raw:
    messages = [{"role": "user", "content": word}]
    return await served.ask(chat(f"authorization: Bearer {key}\r\n", messages=messages))


def shared(served: Served) -> Shared:
    assert served.gateway.cache is not None
    told = served.gateway.cache.report().shared
    assert told is not None
    return told


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.01)


async def until_joined(*gateways: Served) -> None:
    """What is kept from now on is shared: it is known what was dropped."""
    for served in gateways:
        cache = served.gateway.cache
        assert cache is not None
        sharing = cache.sharing
        assert sharing is not None
        await until(lambda sharing=sharing: bool(sharing.seen))


async def until_shared(redis: OwnRedis, count: int = 1) -> None:
    """So many answers are in there."""
    client = pytest.importorskip("redis.asyncio").Redis.from_url(redis.url)
    async with asyncio.timeout(10):
        while len([name async for name in client.scan_iter("*:answer:*")]) < count:
            pass
    await client.aclose()


async def test_what_one_has_made_another_gives() -> None:
    async with OwnRedis() as redis, FakeEngine() as engine:
        keeps = keeping(RULE, redis=redis.url)
        async with serving(engine, cache=keeps) as one, serving(engine, cache=keeps) as other:
            await until_joined(one, other)
            first = await ask(one, "why")
            await until_shared(redis)
            answer = await ask(other, "why")
            stranger = await ask(other, "why", key="b")
            (span, *_) = [span for span in await other.spans(2) if isinstance(span.work, ModelCall)]
            assert isinstance(span.work, ModelCall)
            assert answer.headers["x-headway-cache"] == "hit"
            assert answer.body == first.body
            assert span.work.given_again is not None
            assert span.work.given_again.source == "shared"
            assert "x-headway-cache" not in stranger.headers, "in Redis, too, each credential has its own"
            assert len(engine.requests) == 2
            assert one.gateway.cache is not None
            assert one.gateway.cache.drop(Drop(tags=("docs",))) == 1
            cache = other.gateway.cache
            assert cache is not None
            await until(lambda: cache.report().memory.entries == 0)
            assert "x-headway-cache" not in (await ask(other, "why")).headers


async def test_calls_go_on_while_it_is_gone_and_share_again_when_it_is_back() -> None:
    async with OwnRedis() as redis, FakeEngine() as engine:
        keeps = keeping(RULE, redis=redis.url)
        async with serving(engine, cache=keeps) as one, serving(engine, cache=keeps) as other:
            await until_joined(one, other)
            await ask(one, "before")
            await until_shared(redis)

            await redis.stop()
            await until(lambda: not shared(one).up and not shared(other).up)
            assert (await ask(one, "before")).headers["x-headway-cache"] == "hit", "memory has it"
            assert (await ask(other, "meanwhile")).status == 200
            assert (await ask(other, "meanwhile")).headers["x-headway-cache"] == "hit"
            assert shared(other).troubles > 0

            await redis.start()
            await until(lambda: shared(one).up and shared(other).up)
            await until_joined(one, other)
            await ask(one, "after")
            await until_shared(redis)
            assert (await ask(other, "after")).headers["x-headway-cache"] == "hit"


async def test_a_gateway_starts_and_serves_where_it_is_not_there_yet() -> None:
    redis = OwnRedis()
    async with FakeEngine() as engine, serving(engine, cache=keeping(RULE, redis=redis.url)) as served:
        assert (await ask(served, "why")).status == 200
        assert (await ask(served, "why")).headers["x-headway-cache"] == "hit"
        await until(lambda: not shared(served).up)
        async with redis:
            await until(lambda: shared(served).up)
