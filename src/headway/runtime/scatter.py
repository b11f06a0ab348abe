"""Many items, one function: at most so many at once, each with its retries and its time, and nothing left running.

A scatter is a stream of outcomes in the order in which they come; gathering, voting and racing are ways to read it.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any, Final, Generic, TypedDict, TypeVar

from msgspec import Struct

from headway.core.errors import (
    BadInputError,
    HeadwayError,
    InDoubtError,
    ItemsFailedError,
    OverBudgetError,
    OverDeadlineError,
    StoppedError,
)
from headway.runtime.unwanted import UNWANTED, passed_on

T = TypeVar("T")
R = TypeVar("R")
_log = logging.getLogger(__name__)

_GRACE: Final = 1.0
"""Seconds that a function which was told to stop has for it, before it is left to itself and told of."""
GRACE_OF_A_TASK: Final = 3.0
"""The same for a whole task, which may have to wait until its own items have had theirs."""
_FINAL: Final = (OverBudgetError, OverDeadlineError, InDoubtError, BadInputError, StoppedError)
"""Errors that are the same the next time."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0


class Success(Struct, Generic[R], frozen=True):
    """An item's result."""

    index: int
    value: R


class Failure(Struct, frozen=True):
    """What an item failed of, after its last attempt."""

    index: int
    error: Exception


class How(TypedDict, total=False):
    """How items are worked on."""

    limit: int
    """Items under way at once; 64 unless said otherwise, with votes and races all."""
    retries: int
    """Further attempts at an item that failed, but where the next would fail too, as when the budget is used up. Paid
    calls that an attempt finished are not made again."""
    timeout: float
    """Seconds that one attempt has."""
    hedge: float
    """Seconds after which an attempt that is not done gets a twin; the first of both that succeeds counts."""


class Tolerant(How, total=False):
    """How items are worked on, some of which may fail."""

    tolerate: float
    """Share of the items that may fail, from 0 to 1; none unless said otherwise."""


class Options(Struct, frozen=True, kw_only=True):
    """As `Tolerant`, whole.

    Raises:
        BadInputError: one of them makes no sense.
    """

    limit: int = 64
    retries: int = 0
    timeout: float | None = None
    tolerate: float = 0.0
    hedge: float | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name, value, sound in (
            ("limit", self.limit, self.limit >= 1),
            ("retries", self.retries, self.retries >= 0),
            ("timeout", self.timeout, self.timeout is None or (self.timeout > 0 and isfinite(self.timeout))),
            ("tolerate", self.tolerate, 0 <= self.tolerate <= 1),
            ("hedge", self.hedge, self.hedge is None or (self.hedge >= 0 and isfinite(self.hedge))),
        ):
            if not sound:
                raise BadInputError(
                    f"{name}={value} makes no sense.",
                    fix="limit is 1 or more, retries 0 or more, timeout and hedge are seconds, tolerate is 0 to 1.",
                )


Work = Callable[[int, str, T], Coroutine[Any, Any, R]]
"""Makes one attempt at an item, given its index and a name for the attempt that differs from its others."""


class Scatter(Generic[T, R]):
    """One function at work on many items.

    Args:
        name: what the items are called in errors.
        work: makes an attempt.
        items: where they come from, asked whenever there is room. It may be at its end and later have more.
        options: how.
        lasting: whether it goes on when there is nothing to do, because `more` will tell of more.
    """

    def __init__(
        self, name: str, work: Work[T, R], items: Iterator[T], options: Options, *, lasting: bool = False
    ) -> None:
        self._name = name
        self._work = work
        self._items = items
        self._options = options
        self._lasting = lasting
        self._next = 0
        self._running: dict[asyncio.Task[R], int] = {}
        self._ended: deque[Success[R] | Failure] = deque()
        self._wake = asyncio.Event()
        self._broken: Exception | None = None
        self._stopping = False

    async def outcomes(self) -> AsyncGenerator[Success[R] | Failure]:
        """Outcomes as they come. Closing it stops all that is under way; a reader who is slow slows the items down.

        Raises:
            Exception: what taking the next item raised.
        """
        why: str | None = None
        try:
            self._fill()
            while self._running or self._ended or (self._lasting and self._broken is None):
                await self._wake.wait()
                while self._ended:
                    yield self._ended[0]  # which takes its place among those under way until the reader is done with it
                    self._ended.popleft()
                    self._fill()
                self._wake.clear()
            if self._broken is not None:
                raise self._broken
        except (GeneratorExit, asyncio.CancelledError) as error:
            why = passed_on(error)
            raise
        finally:
            await self._stop(why)

    def more(self) -> None:
        """There are items again where there were none."""
        self._fill()

    def _fill(self) -> None:
        limit = self._options.limit
        while len(self._running) + len(self._ended) < limit and self._broken is None and not self._stopping:
            try:
                item = next(self._items)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001 - the caller's iterator; what it raises is raised to the caller
                self._broken = error
                return
            task = asyncio.create_task(self._item(self._next, item))
            self._running[task] = self._next
            self._next += 1
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[R]) -> None:
        index = self._running.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if self._stopping and not self._running:
            self._wake.set()
        if index is None or self._stopping:
            return
        if task.cancelled():
            error = HeadwayError(f"{self._name}, item {index}: it was cancelled from within.")
        if error is None:
            self._ended.append(Success(index, task.result()))
        elif isinstance(error, Exception):
            self._ended.append(Failure(index, error))
        self._wake.set()
        self._fill()

    async def _item(self, index: int, item: T) -> R:
        attempt = 0
        while True:
            try:
                return await self._attempt(index, attempt, item)
            except _FINAL:
                raise
            except Exception:
                if attempt >= self._options.retries:
                    raise
            await asyncio.sleep(min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE) * random.uniform(0.5, 1))  # noqa: S311 - no secret
            attempt += 1

    async def _attempt(self, index: int, attempt: int, item: T) -> R:
        timeout = self._options.timeout
        if timeout is None and self._options.hedge is None:
            return await self._work(index, f"~{attempt}" if attempt else "", item)
        if timeout is None:
            return await self._hedged(index, attempt, item)
        stuck = asyncio.get_running_loop().call_later(timeout + _GRACE, self._abandon, index, timeout)
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                return await self._hedged(index, attempt, item)
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError(f"{self._name}, item {index}: not done in {timeout:g} s.") from error
            raise
        finally:
            stuck.cancel()

    async def _hedged(self, index: int, attempt: int, item: T) -> R:
        name = f"~{attempt}" if attempt else ""
        if self._options.hedge is None:
            return await self._work(index, name, item)
        racing, why = {asyncio.ensure_future(self._work(index, name, item))}, UNWANTED
        try:
            ended, _ = await asyncio.wait(racing, timeout=self._options.hedge)
            if not ended:
                racing.add(asyncio.ensure_future(self._work(index, f"{name}+", item)))
            waiting = set(racing)
            while True:
                ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    if not task.cancelled() and task.exception() is None:
                        return task.result()
                if not waiting:
                    return ended.pop().result()
        except asyncio.CancelledError as error:
            why = passed_on(error)
            raise
        finally:
            await stop(racing, self._name, why=why)

    def _abandon(self, index: int, timeout: float) -> None:
        self._running = {task: at for task, at in self._running.items() if at != index}
        _log.warning("%s, item %d goes on although it was told to stop", self._name, index)
        error = OverDeadlineError(
            f"{self._name}, item {index}: not done in {timeout:g} s, and it goes on although it was told to stop.",
            fix="Let asyncio.CancelledError pass: catch Exception, not BaseException.",
        )
        self._ended.append(Failure(index, error))
        self._wake.set()
        self._fill()

    async def _stop(self, why: str | None) -> None:
        self._stopping = True
        for task in list(self._running):
            task.cancel(why)
        left = len(self._running) + 1
        while self._running and len(self._running) < left:  # of very many, not all are told within one pause
            left = len(self._running)
            self._wake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _GRACE)
        for task in self._running:
            _log.warning("%s: %s goes on although it was told to stop", self._name, task.get_name())


async def stop(tasks: set[asyncio.Task[R]], name: str, grace: float = _GRACE, *, why: str | None = None) -> None:
    """Cancel what still runs and wait for it, but not for ever for what does not heed: so many seconds.

    ``why`` is the message that it is cancelled with.
    """
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel(why)
    if running:
        _, stuck = await asyncio.wait(running, timeout=grace)
        for task in stuck:
            _log.warning("%s: %s goes on although it was told to stop", name, task.get_name())
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()


class Tally:
    """How many of a scatter's items are done, and whether too many have failed.

    Args:
        name: what the items are called in errors.
        of: items in all; ``None``: nobody knows, so a share of them is known only at their end.
        tolerate: share of them that may fail.
    """

    def __init__(self, name: str, of: int | None, tolerate: float) -> None:
        self.of = of
        self.done = 0
        self.failures: list[Failure] = []
        self._name = name
        self._tolerate = tolerate

    def count(self, outcome: Success[Any] | Failure) -> None:
        """An item has ended.

        Raises:
            ItemsFailedError: more have failed than may.
        """
        match outcome:
            case Success():
                self.done += 1
            case Failure():
                self.failures.append(outcome)
                if self.of is not None or not self._tolerate:
                    self._judge(self.of)

    def end(self) -> None:
        """There are no more items; raises as `count`."""
        if self.of is None:
            self._judge(self.done + len(self.failures))

    def _judge(self, of: int | None) -> None:
        if len(self.failures) > self._tolerate * (of or 0):
            raise failed(self._name, self.failures, of)


def failed(name: str, failures: list[Failure], of: int | None) -> ItemsFailedError:
    """Too many of ``of`` items failed."""
    first = failures[0]
    error = ItemsFailedError(
        f"{name}: {len(failures)}{'' if of is None else f' of {of}'} items failed, more than is tolerated; "
        f"first item {first.index}: {type(first.error).__name__}: {first.error}",
        fix="Mend what they failed of, or raise tolerate or retries.",
        errors=tuple((failure.index, failure.error) for failure in failures),
    )
    error.__cause__ = first.error
    return error
