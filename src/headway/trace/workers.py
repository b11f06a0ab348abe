"""Other processes that help with work: as many as asked for, results in order, none of them left behind."""

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final, Generic, TypeVar

from headway.core.errors import WorkerError

_AHEAD: Final = 2
"""Pieces of work for each process that lie ready or wait to be fetched; more would only take memory."""
_COLLECT_EVERY: Final = 50_000
"""Objects made before Python looks for cycles among them; 700 by default, which takes a sixth of an import's time."""

Work = TypeVar("Work")
Result = TypeVar("Result")


class Workers:
    """Processes of ours; made by `hired`.

    They are spawned, not forked: the interpreter that asks may have threads, whose locks a fork would copy as they are.

    Args:
        processes: how many.
        leash: they end when its other end is closed, by whom or whatever that is.
    """

    def __init__(self, processes: int, leash: Connection) -> None:
        self._ahead = processes * _AHEAD
        self.pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), initializer=_begin, initargs=(leash,)
        )

    def map(self, do: Callable[[Work], Result], work: Iterable[Work]) -> Iterator[Result]:
        """What ``do`` makes of each piece of work, in the order of the work, which is asked for as it is needed.

        Raises:
            WorkerError: a process died.
        """
        running: deque[Future[Result]] = deque()
        with _told_of_death():
            for piece in work:
                running.append(self._submit(do, piece))
                if len(running) > self._ahead:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()

    def share(self, do: Callable[[Work], Result], work: Sequence[Work]) -> "Shared[Work, Result]":
        """Hand all of the work out, and see what is done of it later.

        Raises:
            WorkerError: a process died.
        """
        with _told_of_death():
            return Shared(do, [(piece, self._submit(do, piece)) for piece in work])

    def _submit(self, do: Callable[[Work], Result], piece: Work) -> Future[Result]:
        """Processes start here, with Ctrl-C blocked: they have not yet learnt to leave it to us."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self.pool.submit(do, piece)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Shared(Generic[Work, Result]):
    """Work that was handed out."""

    def __init__(self, do: Callable[[Work], Result], begun: Sequence[tuple[Work, Future[Result]]]) -> None:
        self._do = do
        self._begun = begun

    def results(self) -> list[Result]:
        """What was made of each piece, in order; what nobody has begun is done here, the last first.

        Raises:
            WorkerError: a process died.
        """
        here = {i: self._do(piece) for i, (piece, future) in reversed([*enumerate(self._begun)]) if future.cancel()}
        with _told_of_death():
            return [here[i] if i in here else future.result() for i, (_, future) in enumerate(self._begun)]


@contextmanager
def _told_of_death() -> Generator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerError(
            "A process that helped to read ended before its work was done: it may have been killed, or found too"
            " little memory.",
            fix="Try again with --jobs 1, which takes longer and less memory.",
        ) from error


@contextmanager
def rarely_collected() -> Generator[None]:
    """Let Python look for garbage less often, for as long as many values are made of which none refer to themselves."""
    before = gc.get_threshold()
    gc.set_threshold(_COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def hired(processes: int) -> Generator[Workers]:
    """Processes for as long as the context lasts; after it none is left, however it ends."""
    theirs, ours = multiprocessing.Pipe(duplex=False)
    with theirs, ours:
        workers = Workers(processes, theirs)
        try:
            yield workers
        except BaseException:
            ours.close()  # whatever they are doing is not wanted any more
            raise
        finally:
            workers.pool.shutdown(cancel_futures=True)


def _begin(leash: Connection) -> None:
    """In a new process: leave Ctrl-C to who asked, and do not outlive them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_COLLECT_EVERY)
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()


def _end_with(leash: Connection) -> None:
    leash.poll(None)
    os._exit(1)
