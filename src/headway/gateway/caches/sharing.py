"""Answers that several workers share: asked after memory, never waited for long, and done without while it is away."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from headway.core.clock import Clock
from headway.core.errors import StoreError
from headway.core.money import MicroUsd
from headway.gateway.caches.figures import Shared
from headway.gateway.caches.outcomes import Ticket
from headway.gateway.caches.worker import Worker
from headway.policy.cache.kept import Kept
from headway.policy.cache.keys import CacheKey
from headway.policy.cache.labels import EVERYTHING
from headway.wire.openai import Answer

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_AT_ONCE: Final = 256
"""Looks and answers under way; beyond, calls go on without."""
_REST_SECONDS: Final = 1.0
"""How long a store that could not be used is left alone."""
_NEWS_SECONDS: Final = 1.0
"""How often it is looked whether another worker has dropped answers."""


class Portable(Struct, frozen=True, kw_only=True):
    """A kept answer without times of one machine's clock."""

    scope: str
    """Whose it is, to be looked at again when it is read."""
    body: bytes
    media: bytes
    answer: Answer
    fresh_seconds: float
    """How long it was to be fresh, from when it was made."""
    stale_seconds: float
    """And after that, to be given while it is asked for anew."""
    seconds: float
    cost: int | None
    labels: frozenset[str]


class News(Struct, frozen=True):
    """What was dropped since it was looked last."""

    seen: str
    """How far it is known now."""
    labels: frozenset[str] | None
    """``None``: so much that not all of it is known."""


class AnswerStore(Protocol):
    """Where answers are shared. Every method may take long and raise `StoreError`; all run on one thread."""

    def get(self, key: CacheKey) -> tuple[Portable, float] | None:
        """An answer, and the seconds that are left of it."""
        ...

    def put(self, key: CacheKey, answer: Portable, seen: str) -> bool:
        """Keep an answer, unless something of its labels was dropped since ``seen``."""
        ...

    def drop(self, labels: frozenset[str]) -> None:
        """Give no answer with one of these labels any more, and let others know."""
        ...

    def news(self, seen: str) -> News:
        """What was dropped since ``seen``; ``""``: nothing, but how far it is."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Sharing:
    """The store, from the event loop's side.

    Args:
        store: closed with this.
        clock: the gateway's.
    """

    def __init__(self, store: AnswerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._worker = Worker("shared answers", _AT_ONCE)
        self._rests_until = float("-inf")
        self._up = True
        self._listening: asyncio.Task[None] | None = None
        self._dropping: set[str] = set()
        """What is still to be dropped there."""
        self._being_dropped: frozenset[str] = frozenset()
        self._wake = asyncio.Event()
        self.seen = ""
        """How far other workers' drops are known."""
        self._lookups = self._found = self._troubles = 0

    def get(self, ticket: Ticket, then: Callable[[Kept | None], None]) -> bool:
        """Have an answer looked for; False: not now, and ``then`` is not called."""
        gone = self._dropping | self._being_dropped
        if self._clock.now() < self._rests_until or not gone.isdisjoint(ticket.labels):
            return False
        asked = self._worker.do(partial(self._store.get, ticket.key), partial(self._got, ticket.scope, then))
        self._lookups += asked
        return asked

    def put(self, ticket: Ticket, kept: Kept, now: float) -> None:
        """Let others have an answer, if that can be done now."""
        if now < self._rests_until or not ticket.seen:
            return  # where it is not known what was dropped, something may have been
        answer = Portable(
            scope=ticket.scope,
            body=kept.body,
            media=kept.media,
            answer=kept.answer,
            fresh_seconds=kept.fresh_until - kept.made,
            stale_seconds=kept.stale_until - kept.fresh_until,
            seconds=kept.seconds,
            cost=kept.cost,
            labels=kept.tags,
        )
        self._worker.do(partial(self._store.put, ticket.key, answer, ticket.seen), self._done)

    def drop(self, labels: frozenset[str]) -> None:
        """Drop there, too, as soon as it can be done; until then nothing of it is taken from there."""
        self._dropping |= labels
        self._wake.set()

    def report(self) -> Shared:
        """How it goes."""
        return Shared(
            lookups=self._lookups,
            found=self._found,
            troubles=self._troubles,
            turned_away=self._worker.turned_away,
            up=self._up,
        )

    def start(self, dropped: Callable[[frozenset[str]], int]) -> None:
        """Tell of drops by others; on the running event loop."""
        self._listening = asyncio.create_task(self._listen(dropped))

    async def close(self) -> None:
        """Pass on what is to be dropped, if it can be, and close the store."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        await self._worker.close()
        try:
            if self._dropping:
                await asyncio.to_thread(self._store.drop, frozenset(self._dropping))
        except Exception as error:  # noqa: BLE001 - nothing more can be done about it
            _log.warning("cache: what was dropped last is still shared with other workers: %s", error)
        finally:
            await asyncio.to_thread(self._store.close)

    async def refreshed(self, dropped: Callable[[frozenset[str]], int]) -> None:
        """Drop what is to be dropped and hear what was: done every second by itself."""
        labels, self._dropping = frozenset(self._dropping), set[str]()
        self._being_dropped = labels
        try:
            if labels:
                await self._on_thread(partial(self._store.drop, labels))
            news = await self._on_thread(partial(self._store.news, self.seen))
        except Exception as error:  # noqa: BLE001 - the store is another's: whatever it is, calls go on
            self._dropping |= labels
            self._trouble(error)
            return
        finally:
            self._being_dropped = frozenset()
        self._recovered()
        self.seen = news.seen
        if news.labels is None:
            dropped(frozenset({EVERYTHING}))
        elif news.labels:
            dropped(news.labels)

    async def _listen(self, dropped: Callable[[frozenset[str]], int]) -> None:
        while True:
            await self.refreshed(dropped)
            with suppress(TimeoutError):
                async with asyncio.timeout(_NEWS_SECONDS):
                    await self._wake.wait()
            self._wake.clear()

    async def _on_thread(self, job: Callable[[], _T]) -> _T:
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

        def told(outcome: _T | Exception) -> None:
            if future.cancelled():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        if not self._worker.do(job, told):
            raise StoreError("Too much is being asked of it already.")
        return await future

    def _got(
        self,
        scope: str,
        then: Callable[[Kept | None], None],
        outcome: tuple[Portable, float] | Exception | None,
    ) -> None:
        if isinstance(outcome, Exception):
            self._trouble(outcome)
            then(None)
            return
        self._recovered()
        if outcome is None or outcome[0].scope != scope:
            then(None)
            return
        self._found += 1
        then(_kept(*outcome, self._clock.now()))

    def _done(self, outcome: object) -> None:
        if isinstance(outcome, Exception):
            self._trouble(outcome)

    def _trouble(self, error: Exception) -> None:
        self._troubles += 1
        self._rests_until = self._clock.now() + _REST_SECONDS
        if self._up:
            self._up = False
            _log.warning("cache: answers are not shared with other workers for now: %s", error)

    def _recovered(self) -> None:
        if not self._up:
            self._up = True
            _log.info("cache: answers are shared with other workers again")


def _kept(answer: Portable, left: float, now: float) -> Kept | None:
    """On this machine's clock; ``None``: it is fresh no more."""
    stale_until = now + left
    fresh_until = stale_until - answer.stale_seconds
    if fresh_until <= now:
        return None
    return Kept(
        body=answer.body,
        media=answer.media,
        answer=answer.answer,
        made=min(now, fresh_until - answer.fresh_seconds),
        fresh_until=fresh_until,
        stale_until=stale_until,
        seconds=answer.seconds,
        cost=None if answer.cost is None else MicroUsd(answer.cost),
        tags=answer.labels,
    )
