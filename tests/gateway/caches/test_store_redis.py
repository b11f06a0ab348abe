"""Answers in a real Redis: how long they last, what was dropped, and what is not believed."""

from collections.abc import Generator

import pytest
from services import clear_redis, own_name, redis_url

from headway.core.errors import BadInputError, StoreError
from headway.core.usage import Usage
from headway.gateway.caches.sharing import News, Portable
from headway.gateway.caches.store_redis import RedisAnswers
from headway.policy.cache.keys import CacheKey
from headway.wire.openai import Answer, ToolCall

A, B = CacheKey(b"\0a" * 8), CacheKey(b"\0b" * 8)


def portable(*labels: str, seconds: float = 100.0) -> Portable:
    return Portable(
        scope="tenant:acme",
        body=b'{"a": 1}',
        media=b"application/json",
        answer=Answer(content="one", tool_calls=(ToolCall("i", "n", "{}"),), usage=Usage(output_tokens=3)),
        fresh_seconds=seconds,
        stale_seconds=20.0,
        seconds=1.5,
        cost=None,
        labels=frozenset({"all", *labels}),
    )


@pytest.fixture
def name() -> Generator[str]:
    redis_url()
    prefix = own_name()
    yield prefix
    clear_redis(prefix)


@pytest.fixture
def store(name: str) -> Generator[RedisAnswers]:
    store = RedisAnswers(redis_url(), prefix=name)
    yield store
    store.close()


def seen(store: RedisAnswers) -> str:
    return store.news("").seen


def test_an_answer_comes_back_whole_with_what_is_left_of_it(store: RedisAnswers) -> None:
    assert store.get(A) is None
    assert store.put(A, portable("x"), seen(store))
    found = store.get(A)
    assert found is not None
    assert found[0] == portable("x")
    assert 0 < found[1] <= 120.0
    assert store.get(B) is None


def test_it_is_not_kept_where_it_is_not_known_what_was_dropped(store: RedisAnswers) -> None:
    assert not store.put(A, portable(), "0-0")
    seen(store)
    assert not store.put(A, portable(), "0-0")


def test_what_was_dropped_is_given_no_more_and_what_was_not_is(store: RedisAnswers) -> None:
    store.put(A, portable("x"), seen(store))
    store.put(B, portable("y"), seen(store))
    store.drop(frozenset({"x", "z"}))
    assert store.get(A) is None
    assert store.get(B) is not None
    store.drop(frozenset({"all"}))
    assert store.get(B) is None


def test_an_answer_asked_for_before_a_drop_is_not_kept_after_it(store: RedisAnswers) -> None:
    before = seen(store)
    store.drop(frozenset({"x"}))
    assert not store.put(A, portable("x"), before)
    assert store.put(B, portable("y"), before)
    assert store.put(A, portable("x"), seen(store))
    assert store.get(A) is not None


def test_others_hear_of_drops_once_and_in_full(store: RedisAnswers, name: str) -> None:
    other = RedisAnswers(redis_url(), prefix=name)
    start = seen(store)
    other.drop(frozenset({"x"}))
    other.drop(frozenset({"y", "z"}))
    other.close()
    news = store.news(start)
    assert news.labels == {"x", "y", "z"}
    assert store.news(news.seen) == News(news.seen, frozenset())


def test_whoever_was_away_too_long_is_told_that_it_cannot_know(store: RedisAnswers) -> None:
    start = seen(store)
    store.put(A, portable(), start)
    for _ in range(1000):
        store.drop(frozenset({"other"}))
    assert store.news(start).labels is None
    assert store.get(A) is None


def test_a_server_that_lost_its_memory_gives_nothing_from_before(store: RedisAnswers, name: str) -> None:
    start = seen(store)
    clear_redis(name)
    assert store.news(start).labels is None
    assert not store.put(A, portable(), start)
    assert store.put(A, portable(), seen(store))


def test_what_somebody_else_wrote_there_is_not_believed(store: RedisAnswers, name: str) -> None:
    redis = pytest.importorskip("redis").Redis.from_url(redis_url())
    store.put(A, portable(), seen(store))
    redis.hset(f"{{{name}}}:answer:{A.hex()}", "body", b"\x81\xa5scope\x01")
    assert store.get(A) is None
    redis.delete(f"{{{name}}}:answer:{A.hex()}")
    redis.hset(f"{{{name}}}:answer:{A.hex()}", "body", b"alone")
    assert store.get(A) is None
    redis.set(f"{{{name}}}:answer:{B.hex()}", b"of another type")
    with pytest.raises(StoreError, match="Redis, which shares answers, cannot be used"):
        store.get(B)
    redis.close()


def test_an_answer_goes_by_itself(store: RedisAnswers, name: str) -> None:
    redis = pytest.importorskip("redis").Redis.from_url(redis_url())
    store.put(A, portable(seconds=5.0), seen(store))
    assert 0 < redis.pttl(f"{{{name}}}:answer:{A.hex()}") <= 25_000
    redis.close()


def test_no_url_of_a_redis() -> None:
    with pytest.raises(BadInputError, match="no address of a Redis"):
        RedisAnswers("http://127.0.0.1")
