"""Redis and PostgreSQL, where tests have them; tests of theirs skip and say so where not."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pytest

REDIS: Final = os.environ.get("HEADWAY_TEST_REDIS", "redis://127.0.0.1:6379/0")
POSTGRES: Final = os.environ.get("HEADWAY_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


def redis_url() -> str:
    """The URL of a Redis that answers; skips where none does."""
    redis = pytest.importorskip("redis", reason="the extra `redis` is not installed")
    url = REDIS if "://" in REDIS else f"redis://{REDIS}"
    client = redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2)
    try:
        client.ping()
    except redis.RedisError as error:
        pytest.skip(f"no Redis answers at HEADWAY_TEST_REDIS ({url}): {error}")
    finally:
        client.close()
    return url


def postgres_url() -> str:
    """The URL of a PostgreSQL that answers; skips where none does."""
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    url = POSTGRES if "://" in POSTGRES else f"postgresql://postgres@{POSTGRES}/postgres"
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL answers at HEADWAY_TEST_POSTGRES: {type(error).__name__}")
    return url


def own_name() -> str:
    """A name that no other run of the tests uses."""
    return f"headway_test_{uuid4().hex[:12]}"


def clear_redis(prefix: str) -> None:
    """Remove what a test left in Redis."""
    redis = pytest.importorskip("redis")
    client = redis.Redis.from_url(redis_url())
    for name in client.scan_iter(f"{{{prefix}}}*"):
        client.delete(name)
    client.close()


@contextmanager
def own_schema(url: str) -> Generator[str]:
    """A name for a schema that no other run of the tests uses; what is in it at the end goes."""
    psycopg = pytest.importorskip("psycopg")
    name = own_name()
    try:
        yield name
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
