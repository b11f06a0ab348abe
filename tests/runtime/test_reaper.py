from collections.abc import Generator

import pytest
from services import own_schema, postgres_url

from headway.core.errors import StoreError
from headway.runtime.reaper import Leases

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")


@pytest.fixture
def schema() -> Generator[str]:
    with own_schema(postgres_url()) as name:
        yield name


def age(schema: str, worker: str) -> None:
    """Let a lease be ten seconds old."""
    with psycopg.connect(postgres_url(), autocommit=True) as connection:
        query = f"UPDATE {schema}.lease SET seen = clock_timestamp() - interval '10 seconds' WHERE worker = %s"  # noqa: S608 - our own name
        connection.execute(query.encode(), (worker,))


def test_who_does_not_renew_is_dead_once_and_learns_of_it(schema: str) -> None:
    url, handed = postgres_url(), list[str]()
    a, b = Leases(url, schema, "a"), Leases(url, schema, "b")
    assert a.renew()
    assert b.reap(handed.append) == []
    age(schema, "a")
    assert b.reap(handed.append) == ["a"] == handed
    assert b.reap(handed.append) == []
    assert not a.renew()
    assert a.renew()
    a.close()
    b.close()


def test_a_worker_that_still_starts_is_not_dead(schema: str) -> None:
    url = postgres_url()
    a, b = Leases(url, schema, "a"), Leases(url, schema, "b")
    with psycopg.connect(url) as connection:
        query = f"SELECT seen > clock_timestamp() + interval '30 seconds' FROM {schema}.lease WHERE worker = 'a'"  # noqa: S608 - our own name
        assert connection.execute(query.encode()).fetchone() == (True,)
    a.close()
    b.close()


def test_what_could_not_be_handed_over_is_tried_again(schema: str) -> None:
    a, b = Leases(postgres_url(), schema, "a"), Leases(postgres_url(), schema, "b")
    age(schema, "a")

    def fails(_worker: str) -> None:
        raise StoreError("not now")

    with pytest.raises(StoreError, match="not now"):
        b.reap(fails)
    assert b.reap(lambda _worker: None) == ["a"]
    a.close()
    b.close()


def test_a_database_that_is_not_there_is_told() -> None:
    with pytest.raises(StoreError, match="leases cannot be used"):
        Leases("postgresql://nobody@127.0.0.1:1/none", "s", "a")
