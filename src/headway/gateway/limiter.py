"""Limits at work in one worker: reservations in memory, intents on disk, exchanges with the book that all share."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from msgspec import Struct

from headway.core.clock import Clock
from headway.core.errors import StoreError
from headway.gateway.intents import Intents, dead
from headway.policy.limits.book import Book, Exchange, LeftError, Reply, Use
from headway.policy.limits.counter import Warned
from headway.policy.limits.grant import Ask, Grant, Short
from headway.policy.limits.ledger import Ledger
from headway.policy.limits.refused import Refused

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
_BEAT_SECONDS: Final = 0.25
"""How long the book may lag behind what a worker has settled; its death loses none of it, for the intents tell."""
_CARE_SECONDS: Final = 5.0
"""How often the files of dead workers are looked for."""
_FORGET_SECONDS: Final = 40 * 24 * 3600.0
"""Totals that nothing was added to for as long are of no window any more."""


class _Waiting(Struct, eq=False):
    ask: Ask
    short: Short
    future: "asyncio.Future[Grant | Refused]"
    answered: int | None = None


class _Unwritten(Struct, eq=False):
    """A call's end that the disk had no room for: its reservation stands until it has."""

    grant: Grant
    used: tuple[int | None, int | None] | None
    """Tokens and money; ``None``: it was released."""


class Limiter:
    """Reserves, settles and releases. Made and used on one event loop; the book is spoken to on a thread of its own.

    Args:
        book: the truth that all workers share; closed with the limiter.
        intents: directory for the files of this book's workers on this machine; ``None``: a worker's death loses what
            it had not reported, up to `_BEAT_SECONDS` of use. clock: seconds that never run backwards. wall: epoch
            seconds, by which days and months are told. warn: told once when a level that warns is reached.
    """

    def __init__(
        self,
        book: Book,
        intents: Path | None,
        clock: Clock,
        *,
        wall: Callable[[], float] = time.time,
        warn: Callable[[Warned], None] = lambda _: None,
    ) -> None:
        self.holder = uuid4().hex
        self._book = book
        self._directory = intents
        self._intents: Intents | None = None
        self._clock = clock
        self._wall = wall
        self._warn = warn
        self._ledger = Ledger()
        self._waiting: list[_Waiting] = []
        self._unwritten: list[_Unwritten] = []
        self._warnings: dict[str, Warned] = {}
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "limits")
        self._running: asyncio.Task[None] | None = None
        self._trouble = False
        self._cared = self._forgot = float("-inf")

    # --- life

    async def start(self) -> None:
        """Open this worker's account, after those of dead workers are closed.

        Raises:
            StoreError: the book or the intents cannot be used.
        """
        if self._directory is not None:
            self._intents = Intents(self._directory, self.holder)
        try:
            await self._in_thread(self._open_account)
        except BaseException:
            if self._intents is not None:
                self._intents.remove()
            self._thread.shutdown(wait=False)
            raise
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Report everything and close the account. Calls still under way are charged as they were reserved.

        A book that cannot be reached now is told by whoever starts next.
        """
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None
        for waiting in self._waiting:
            waiting.future.cancel()
        try:
            await self._report_all()
            await self._in_thread(self._leave)
        except StoreError as error:
            _log.warning("limits: the account stays open until the next start: %s", error)
        finally:
            if self._intents is not None:
                self._intents.close()
            self._book.close()
            self._thread.shutdown(wait=False)

    # --- calls

    def reserve(self, ask: Ask) -> Grant | Refused | Short:
        """Reserve what a call may use. `Short`: hand it to `wait`, which asks the book.

        Raises:
            StoreError: what is reserved could not be written down; nothing is reserved.
        """
        return self._attempt(ask, None)

    async def wait(self, ask: Ask, short: Short) -> Grant | Refused:
        """The outcome, after the book was asked. If the caller is cancelled nothing stays reserved.

        Raises:
            StoreError: the book cannot be asked; nothing is reserved.
        """
        waiting = _Waiting(ask, short, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        future = waiting.future
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                outcome = future.result()
                if isinstance(outcome, Grant):
                    self.release(outcome)
            raise

    async def admit(self, ask: Ask) -> Grant | Refused:
        """`reserve`, and `wait` where it must.

        Raises:
            StoreError: as theirs.
        """
        outcome = self.reserve(ask)
        return await self.wait(ask, outcome) if isinstance(outcome, Short) else outcome

    def settle(self, grant: Grant, tokens: int | None, money: int | None) -> None:
        """The call has ended and used so much (``None``: unknown, so what was reserved). Twice is once."""
        if not grant.ended:
            self._end(_Unwritten(grant, (tokens, money)))

    def release(self, grant: Grant) -> None:
        """The call was not made, so it used nothing. Twice is once."""
        if not grant.ended:
            self._end(_Unwritten(grant, None))

    async def uses(self, counters: tuple[str, ...]) -> tuple[Use, ...]:
        """Where totals stand in the book, which lags behind by `_BEAT_SECONDS`.

        Raises:
            StoreError: it cannot be asked.
        """
        return await self._in_thread(partial(self._book.uses, counters))

    # --- inside

    def _attempt(self, ask: Ask, answered: int | None) -> Grant | Refused | Short:
        outcome = self._ledger.reserve(ask, self._clock.now(), self._wall(), answered=answered)
        if isinstance(outcome, Grant):
            if self._intents is not None:
                try:
                    self._intents.begin(outcome)
                except StoreError:
                    self._ledger.release(outcome)
                    raise
            if outcome.warned:
                self._told(outcome.warned)
        return outcome

    def _end(self, end: _Unwritten) -> None:
        """Write it down, then count it: what the book hears of must not be found open in the file."""
        try:
            self._write(end)
        except StoreError as error:
            if not any(one.grant is end.grant for one in self._unwritten):
                self._unwritten.append(end)
            self._complain(error)

    def _write(self, end: _Unwritten) -> None:
        grant, intents, settlement = end.grant, self._intents, self._ledger.settlements + 1
        if end.used is None:
            if intents is not None:
                intents.release(grant, settlement)
            self._ledger.release(grant)
            return
        tokens, money = end.used
        tokens = grant.tokens if tokens is None else tokens
        money = grant.money if money is None else money
        if intents is not None:
            intents.settle(grant, tokens, money, settlement)
        self._ledger.settle(grant, tokens, money)

    def _told(self, warned: tuple[Warned, ...]) -> None:
        for one in warned:
            if one.window in {"minute", "now"}:
                self._warn(one)
            else:
                self._warnings[one.counter] = one

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            beat = loop.call_later(_BEAT_SECONDS, self._wake.set)
            await self._wake.wait()
            beat.cancel()
            self._wake.clear()
            await self._beat()

    async def _beat(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        for end in unwritten:
            self._end(end)
        now = self._clock.now()
        exchange = self._ledger.report([waiting.short for waiting in self._waiting], now)
        if exchange is not None:
            await self._speak(exchange, now)
        self._ledger.sweep(now)
        if now - self._cared > _CARE_SECONDS:
            self._cared = now
            try:
                await self._in_thread(self._care)
            except StoreError as error:
                self._complain(error)

    async def _speak(self, exchange: Exchange, sent: float) -> None:
        asking, self._waiting = (self._waiting, []) if exchange.wants else ([], self._waiting)
        try:
            reply = await self._in_thread(partial(self._book.exchange, self.holder, exchange))
        except StoreError as error:
            self._ledger.lost(exchange)
            self._complain(error)
            for waiting in (*asking, *self._waiting):
                if not waiting.future.done():
                    waiting.future.set_exception(error)
            self._waiting = []
        except LeftError:
            await self._rejoin(asking)
        except BaseException:
            self._ledger.lost(exchange)
            self._waiting[:0] = asking
            raise
        else:
            self._trouble = False
            self._ledger.take(exchange, reply, sent)
            self._answered(exchange, reply, asking)
        if self._waiting:
            self._wake.set()

    def _answered(self, exchange: Exchange, reply: Reply, asking: list[_Waiting]) -> None:
        if self._intents is not None:
            self._intents.told(exchange.settled)
        for counter in exchange.warned:
            warned = self._warnings.pop(counter, None)
            if warned is not None and counter in reply.first:
                self._warn(warned)
        for waiting in asking:
            if waiting.future.done():
                continue
            waiting.answered = waiting.answered or exchange.number
            try:
                outcome = self._attempt(waiting.ask, waiting.answered)
            except StoreError as error:
                waiting.future.set_exception(error)
                continue
            if isinstance(outcome, Short):
                waiting.short = outcome
                self._waiting.append(waiting)
            else:
                waiting.future.set_result(outcome)

    async def _report_all(self) -> None:
        now = self._clock.now()
        with suppress(LeftError):
            while (exchange := self._ledger.report([], now)) is not None:
                reply = await self._in_thread(partial(self._book.exchange, self.holder, exchange))
                self._ledger.take(exchange, reply, now)
                self._answered(exchange, reply, [])

    async def _rejoin(self, asking: list[_Waiting]) -> None:
        """The book has lost its memory, or took this worker for dead: what it held is nobody's, and it begins anew."""
        _log.error("limits: the book does not know this worker any more; what it held is drawn anew")
        self._ledger.disown()
        self._waiting[:0] = asking
        try:
            await self._in_thread(lambda: self._book.join(self.holder))
        except StoreError as error:
            self._complain(error)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _complain(self, error: StoreError) -> None:
        if not self._trouble:
            self._trouble = True
            _log.error("limits: %s Until then calls under limits are refused.", error)

    # --- on the thread

    def _open_account(self) -> None:
        self._care()
        self._book.join(self.holder)

    def _care(self) -> None:
        if self._directory is not None:
            bury_the_dead(self._directory, self._book)
        now = time.monotonic()
        if now - self._forgot > _FORGET_SECONDS / 1000:
            self._forgot = now
            self._book.forget(_FORGET_SECONDS)

    def _leave(self) -> None:
        if self._intents is None or self._directory is None:
            self._book.leave(self.holder, {})
            return
        self._intents.close()
        bury_the_dead(self._directory, self._book)


def bury_the_dead(directory: Path, book: Book) -> int:
    """Charge the book with what dead workers had reserved or used and not reported; their files go.

    Returns:
        How many there were.
    """
    found = dead(directory)
    try:
        for one in found:
            settled = book.settled(one.holder)
            if settled is not None:
                book.leave(one.holder, one.read().charges(settled))
            one.bury()
    finally:
        for one in found:
            one.close()
    return len(found)
