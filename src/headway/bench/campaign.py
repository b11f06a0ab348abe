"""A campaign: sessions arrive as the load says, until it has seen enough, and all that happened is kept."""

import asyncio
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from random import Random

from msgspec import Struct

from headway.bench.arrivals import Arrivals, Closed, Open
from headway.bench.connection import Client
from headway.bench.endpoint import Endpoint
from headway.bench.graph import Session
from headway.bench.play import PlayedTask, Player
from headway.bench.timing import Waiter, waiter
from headway.core.clock import SystemClock
from headway.core.errors import BadInputError


class Stop(Struct, frozen=True, kw_only=True):
    """When no more sessions are begun. Those under way come to their end."""

    sessions: int | None = None
    seconds: float | None = None


class Campaign(Struct, kw_only=True):
    """What happened. Epoch seconds."""

    began: float
    ended: float
    begun: list[float]
    """When each session was begun, which is not always when it was to be."""
    tasks: list[PlayedTask]
    cpu: float
    """CPU seconds of this process while it ran."""
    connections: int
    interrupted: bool
    """It was stopped by hand, and tasks under way with it."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.began


async def run(  # noqa: PLR0913 - each is one thing that a campaign is made of
    endpoint: Endpoint,
    sessions: Iterator[Session],
    load: Arrivals,
    stop: Stop,
    *,
    dice: Random,
    salt: str,
    patience: float = 600.0,
    told: Callable[[PlayedTask], None] = lambda _: None,
    halt: asyncio.Event | None = None,
) -> Campaign:
    """Put ``endpoint`` under ``load``.

    Args:
        endpoint: what is asked.
        sessions: what is played, one after another; the campaign ends where they do.
        load: when they begin.
        stop: when no more begin.
        dice: of the arrivals.
        salt: see `Player`.
        patience: seconds that a call may take.
        told: hears of every task that begins and ends.
        halt: set it to stop at once; what was measured by then is kept.

    Raises:
        BadInputError: nothing ends the campaign.
    """
    if stop.sessions is None and stop.seconds is None and isinstance(load, Closed):
        raise BadInputError("Nothing ends this load.", fix="Give a number of sessions or of seconds.")
    _room_for_connections()
    under_way = _UnderWay(endpoint, patience, salt, told)
    playing = asyncio.ensure_future(under_way.play(islice(sessions, stop.sessions), load, stop.seconds, dice))
    halting = asyncio.ensure_future((halt or asyncio.Event()).wait())
    try:
        await asyncio.wait((playing, halting), return_when=asyncio.FIRST_COMPLETED)
        interrupted = not playing.done()
    finally:
        for task in (playing, halting):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await playing
        with suppress(asyncio.CancelledError):
            await halting
        await under_way.close()
    return under_way.result(interrupted=interrupted)


class _UnderWay:
    """A campaign while it runs."""

    def __init__(self, endpoint: Endpoint, patience: float, salt: str, told: Callable[[PlayedTask], None]) -> None:
        self._clock = SystemClock()
        self._told = told
        self._client = Client(endpoint, self._clock.now, patience)
        self._waiter: Waiter = waiter(self._clock.now)
        self._player = Player(self._client, self._clock.now, asyncio.sleep, salt=salt, told=self._heard)
        self._begun: list[float] = []
        self._tasks: list[PlayedTask] = []
        self._began = self._clock.now()
        self._ended: float | None = None
        self._cpu = time.process_time()

    async def play(self, sessions: Iterator[Session], load: Arrivals, seconds: float | None, dice: Random) -> None:
        """Begin sessions as ``load`` says, and return when all have ended."""
        end = None if seconds is None else self._began + seconds
        if isinstance(load, Closed):
            await self._closed(sessions, load, end)
        else:
            await self._open(sessions, load, end, dice)
        self._ended = self._clock.now()

    async def close(self) -> None:
        """Drop the connections and the timer."""
        await self._client.close()
        self._waiter.close()

    def result(self, *, interrupted: bool) -> Campaign:
        """What happened."""
        return Campaign(
            began=self._began,
            ended=self._ended or self._clock.now(),
            begun=self._begun,
            tasks=self._tasks,
            cpu=time.process_time() - self._cpu,
            connections=self._client.opened,
            interrupted=interrupted,
        )

    async def _closed(self, sessions: Iterator[Session], load: Closed, end: float | None) -> None:
        async def one_after_another() -> None:
            while end is None or self._clock.now() < end:
                session = next(sessions, None)
                if session is None:
                    return
                await self._session(session, self._clock.now())

        async with asyncio.TaskGroup() as group:
            for _ in range(load.tasks):
                group.create_task(one_after_another())

    async def _open(self, sessions: Iterator[Session], load: Open, end: float | None, dice: Random) -> None:
        began = self._clock.now()
        async with asyncio.TaskGroup() as group:
            for offset in load.times(dice):
                if end is not None and began + offset >= end:
                    return
                session = next(sessions, None)
                if session is None:
                    return
                await self._waiter.until(began + offset)
                group.create_task(self._session(session, began + offset))

    async def _session(self, session: Session, intended: float) -> None:
        self._begun.append(self._clock.now())
        await self._player.session(session, len(self._begun) - 1, intended)

    def _heard(self, task: PlayedTask) -> None:
        if task.ended is None:
            self._tasks.append(task)
        self._told(task)


def _room_for_connections() -> None:
    """As many open files as the system lets us have: an open load may not be held back by its client."""
    if os.name == "posix":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
