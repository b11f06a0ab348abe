"""What every book of limits must do, over each of them."""

import socket
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest
from services import clear_redis, own_name, redis_url

from headway.core.errors import BadInputError, StoreError
from headway.gateway.access_file import AccessFile
from headway.gateway.book_redis import RedisBook
from headway.gateway.book_sqlite import SqliteBook
from headway.policy.limits.book import Book, Correction, Exchange, Held, Kind, LeftError, Standing, Use, Want
from headway.policy.limits.memory_book import MemoryBook

MONEY = "key:k1/money/2026-11-30"
RATE = "key:k1/requests/minute"
GAUGE = "key:k1/concurrency/now"


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Setup(NamedTuple):
    book: Book
    time: Time


@pytest.fixture(params=["memory", "sqlite", "redis"])
def setup(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Setup]:
    time = Time()
    match request.param:
        case "memory":
            yield Setup(MemoryBook(time), time)
        case "sqlite":
            book = SqliteBook(AccessFile(tmp_path / "access.db"), steady=time, wall=time)
            yield Setup(book, time)
            book.close()
        case _:
            prefix = own_name()
            redis_book = RedisBook(redis_url(), prefix=prefix, now=time)
            yield Setup(redis_book, time)
            redis_book.close()
            clear_redis(prefix)


def draw(book: Book, holder: str, want: Want, number: int = 0) -> Standing:
    return book.exchange(holder, Exchange(number=number, settled=0, wants=(want,))).standings[0]


def money(limit: int, least: int, need: int | None = None) -> Want:
    return Want(MONEY, "total", limit, least, least if need is None else need)


def test_what_is_drawn_is_held_and_not_given_again(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    book.join("b")
    assert draw(book, "a", money(100, 60)) == Standing(60, 0, 60)
    assert draw(book, "b", money(100, 50)) == Standing(0, 0, 60)
    assert draw(book, "b", money(100, 40)) == Standing(40, 0, 100)
    assert book.uses((MONEY, "other")) == (Use(0, 100), Use(0, 0))


def test_a_worker_draws_a_sixteenth_of_what_is_left_or_what_it_needs(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    assert draw(book, "a", money(1600, 1)).given == 100
    assert draw(book, "a", money(1600, 200)).given == 200
    assert draw(book, "a", money(1600, 1000, need=5000)).given == 1300


def test_reports_add_up_and_say_what_is_still_held(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    draw(book, "a", money(100, 50))
    book.exchange("a", Exchange(number=1, settled=1, held=(Held(MONEY, "total", 30, 20),)))
    assert book.uses((MONEY,)) == (Use(30, 20),)
    assert book.settled("a") == 1
    book.exchange("a", Exchange(number=2, settled=2, held=(Held(MONEY, "total", 20, 0),)))
    assert book.uses((MONEY,)) == (Use(50, 0),)


def test_a_report_told_twice_counts_once(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    report = Exchange(number=1, settled=1, held=(Held(MONEY, "total", 30, 0),))
    for _ in range(3):
        book.exchange("a", report)
    assert book.uses((MONEY,)) == (Use(30, 0),)


def test_more_than_the_limit_is_kept_as_it_was_and_nothing_more_is_given(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    book.exchange("a", Exchange(number=1, settled=1, held=(Held(MONEY, "total", 250, 0),)))
    assert draw(book, "a", money(100, 1)) == Standing(0, 250, 0)


def test_who_has_left_is_charged_once_and_holds_nothing(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    draw(book, "a", money(100, 50))
    assert book.leave("a", {MONEY: 20})
    assert not book.leave("a", {MONEY: 20})
    assert book.uses((MONEY,)) == (Use(20, 0),)
    assert book.settled("a") is None
    with pytest.raises(LeftError):
        book.exchange("a", Exchange(number=1, settled=0))


def test_a_rate_frees_when_told(setup: Setup) -> None:
    book, time = setup
    book.join("a")
    rate = Want(RATE, "rate", 2, 1, 1)
    assert draw(book, "a", rate) == Standing(1, 1, 0, 1002)
    time.now += 10.5
    assert draw(book, "a", rate) == Standing(1, 2, 0, 1012)
    refused = draw(book, "a", rate)
    assert (refused.given, refused.used, refused.wait) == (0, 2, 1062 - 1010.5)
    time.now = 1061.9
    assert draw(book, "a", rate).given == 0
    time.now = 1062.0
    assert draw(book, "a", rate).given == 1


def test_what_a_rate_gave_can_be_handed_back(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    standing = draw(book, "a", Want(RATE, "rate", 100, 90, 90))
    back = Correction(RATE, standing.at, 80)
    book.exchange("a", Exchange(number=1, settled=0, corrections=(back,)))
    assert draw(book, "a", Want(RATE, "rate", 100, 90, 90), number=1).used == 100
    more = Correction(RATE, standing.at, -50)
    book.exchange("a", Exchange(number=2, settled=0, corrections=(more,)))
    assert draw(book, "a", Want(RATE, "rate", 100, 1, 1), number=2).used == 150


def test_a_rate_on_a_clock_that_began_anew_frees_nothing(setup: Setup) -> None:
    book, time = setup
    book.join("a")
    assert draw(book, "a", Want(RATE, "rate", 2, 2, 2)).given == 2
    time.now = 5.0
    if not isinstance(book, MemoryBook):  # whose axis is its process's own
        refused = draw(book, "a", Want(RATE, "rate", 2, 1, 1))
        assert (refused.given, refused.wait) == (0, 62.0)


def test_concurrency_of_a_worker_that_fell_silent_is_free(setup: Setup) -> None:
    book, time = setup
    book.join("a")
    book.join("b")
    gauge = Want(GAUGE, "gauge", 2, 2, 2)
    assert draw(book, "a", gauge).given == 2
    time.now += 30
    assert draw(book, "b", gauge) == Standing(0, 0, 2)
    time.now += 0.1
    assert draw(book, "b", gauge) == Standing(2, 0, 2)


def test_time_since_the_first_call_of_a_task(setup: Setup) -> None:
    book, time = setup
    book.join("a")
    elapsed = Want("task:t:1/seconds/task", "elapsed", 60, 0, 0)
    assert draw(book, "a", elapsed).age == 0
    time.now += 42
    assert draw(book, "a", elapsed).age == 42


def test_a_warning_is_told_by_one_worker_only(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    book.join("b")
    told = Exchange(number=1, settled=0, warned=(MONEY,))
    assert book.exchange("a", told).first == (MONEY,)
    assert book.exchange("b", told).first == ()


def test_names_and_numbers_of_every_kind(setup: Setup) -> None:
    book, _ = setup
    book.join("a")
    name = "task:acme:ü/'\"; DROP TABLE total; -- \x01 {x}/money/task"
    assert draw(book, "a", Want(name, "total", 2**53, 2**52, 2**52)).given == 2**52
    book.exchange("a", Exchange(number=1, settled=1, held=(Held(name, "total", 2**52 + 1, 0),)))
    assert book.uses((name,)) == (Use(2**52 + 1, 0),)


@pytest.mark.parametrize("kind", ["total", "gauge", "rate"])
def test_a_wish_for_nothing_is_given_nothing(setup: Setup, kind: Kind) -> None:
    book, _ = setup
    book.join("a")
    assert draw(book, "a", Want("x", kind, 0, 1, 1)).given == 0


def test_what_is_long_over_is_forgotten(tmp_path: Path) -> None:
    time = Time()
    book: Book
    for book in (MemoryBook(time), SqliteBook(AccessFile(tmp_path / "f.db"), steady=time, wall=time)):
        book.join("a")
        book.exchange("a", Exchange(number=1, settled=1, held=(Held(MONEY, "total", 30, 0),)))
        time.now += 50
        book.exchange("a", Exchange(number=2, settled=1, held=(Held("new", "total", 7, 0),)))
        book.forget(40)
        assert book.uses((MONEY, "new")) == (Use(0, 0), Use(7, 0))
        book.close()


def test_a_redis_that_is_not_there_is_told(unused_tcp_port: int) -> None:
    pytest.importorskip("redis")
    book = RedisBook(f"redis://:hidden@127.0.0.1:{unused_tcp_port}/0")
    with pytest.raises(StoreError, match="Check that it runs") as raised:
        book.join("a")
    assert "hidden" not in str(raised.value)
    book.close()
    with pytest.raises(BadInputError, match="redis://127"):
        RedisBook("nowhere")


@pytest.fixture
def unused_tcp_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database at all, but long enough to look at")
    with pytest.raises(BadInputError, match="damaged"):
        AccessFile(tmp_path / "x.db")
    with pytest.raises(StoreError, match="cannot be used"):
        AccessFile(tmp_path / "x.db" / "y.db")


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    AccessFile(tmp_path / "deep" / "access.db").close()
    assert (tmp_path / "deep" / "access.db").stat().st_mode & 0o777 == 0o600
