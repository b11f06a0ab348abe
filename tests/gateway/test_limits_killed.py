"""Real workers on one book, killed at any point: no budget is passed, lost or doubled."""

import random
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest
from limited_worker import open_book
from services import clear_redis, own_name, redis_url

from headway.gateway.limiter import bury_the_dead

LIMIT = 60_000
WORKER = Path(__file__).parents[1] / "support" / "limited_worker.py"
COUNTER = "key:k/money/2026-11"


class Place(NamedTuple):
    store: str
    intents: Path


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Place]:
    if request.param == "sqlite":
        yield Place(str(tmp_path / "access.db"), tmp_path / "intents")
        return
    prefix = own_name()
    yield Place(f"{redis_url()}#{prefix}", tmp_path / "intents")
    clear_redis(prefix)


class Worker:
    """A process, with what it has said; killed after it has said so many lines, if ever."""

    def __init__(self, place: Place, seed: int, dies_after: int | None) -> None:
        self.said: list[str] = []
        self.dies_after = dies_after
        self.process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, WORKER, place.store, place.intents, str(LIMIT), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ready = Event()
        self._listener = Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        with self.process.stdout or pytest.fail("no output") as lines:
            for line in lines:
                if line == "ready\n":
                    self._ready.set()
                    continue
                self.said.append(line)
                if len(self.said) == self.dies_after:
                    self.process.kill()

    def begin(self) -> None:
        assert self._ready.wait(60)
        stdin = self.process.stdin or pytest.fail("no input")
        stdin.write("\n")
        stdin.close()

    def ended(self) -> int:
        self._listener.join(60)
        return self.process.wait(60)

    def charged(self) -> tuple[int, int]:
        """The least and the most that the book may have for it: of each caller's last act it is not known if it was
        done."""
        begun: dict[str, int] = {}
        least = most = 0
        settling: dict[str, int] = {}
        for line in self.said:
            word, call, *money = line.split()
            if word == "B":
                begun[call] = int(money[0])
            elif word == "S":
                settling[call] = int(money[0])
            else:
                used = settling.pop(call)
                del begun[call]
                least, most = least + used, most + used
        for call, money in begun.items():
            least += min(money, settling.get(call, money))
            most += max(money, settling.get(call, money))
        return least, most + (150 if self.dies_after else 0)  # killed between its reservation and saying so


def test_two_workers_at_once_use_a_budget_up_and_never_pass_it(place: Place) -> None:
    workers = [Worker(place, seed, None) for seed in (1, 2)]
    for worker in workers:
        worker.begin()
    assert [worker.ended() for worker in workers] == [0, 0]
    book = open_book(place.store)
    (use,) = book.uses((COUNTER,))
    book.close()
    least, most = (sum(amounts) for amounts in zip(*(worker.charged() for worker in workers), strict=True))
    assert use.used == least == most
    assert use.held == 0
    assert LIMIT - 150 < use.used <= LIMIT
    assert all(len(worker.said) > 30 for worker in workers), "one of them did nearly everything"
    assert not list(place.intents.iterdir())


def test_workers_killed_at_any_point_lose_and_double_nothing(place: Place) -> None:
    dice = random.Random(7)
    deaths = [Worker(place, seed, dice.randint(1, 120)) for seed in range(1, 4)]
    survivor = Worker(place, 9, None)
    for worker in (*deaths, survivor):
        worker.begin()
    assert [worker.ended() for worker in deaths] == [-9, -9, -9]
    assert survivor.ended() == 0
    book = open_book(place.store)
    bury_the_dead(place.intents, book)
    assert bury_the_dead(place.intents, book) == 0
    (use,) = book.uses((COUNTER,))
    book.close()
    least, most = (sum(amounts) for amounts in zip(*(one.charged() for one in (*deaths, survivor)), strict=True))
    assert least <= use.used <= most
    assert use.held == 0
    assert use.used <= LIMIT
    assert not list(place.intents.iterdir())
