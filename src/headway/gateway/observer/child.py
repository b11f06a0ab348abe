"""What runs in the observer's process: it follows the store for as long as the gateway lives.

The gateway writes one `Watch` to standard input and keeps that pipe open; its end means that the gateway is gone or
wants the observer to be: it does what is left to do, for a few seconds at most, and ends. News go to standard output.
Of several gateways that share a store one observer works, and the others wait for it to end.
"""

import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final, TextIO

import msgspec

from headway.core.errors import StoreError
from headway.core.log_lines import formatter
from headway.core.span import ModelCall, Span
from headway.core.task import TaskId
from headway.gateway.observer.calls import call_line, is_call
from headway.gateway.observer.endpoint import Endpoint, HttpPost
from headway.gateway.observer.export import PERIOD, Exporter
from headway.gateway.observer.watch import Told, Watch
from headway.gateway.observer.whole_tasks import WholeTasks
from headway.trace.follow import Follower, Place
from headway.trace.prices import with_own

_log = logging.getLogger(__name__)
_AT_ONCE: Final = 1024
_LAST_SECONDS: Final = 5.0
"""What may be taken at the end to export what is left."""
_NICE: Final = 5
"""How far it stands back for the gateway where both want the processor."""
_ATOMIC: Final = 4096
"""Bytes that a pipe takes in one piece, so that lines of several processes do not mix."""
_LOCK_PERIOD: Final = 1.0


class Observer:
    """Follows a store for figures and for the log of calls.

    Args:
        watch: what to do.
        log: takes the lines of calls.
    """

    def __init__(self, watch: Watch, log: TextIO) -> None:
        self._watch = watch
        self._path = Path(watch.store)
        self._out = log
        self._follower: Follower | None = None
        self.place: Place = watch.begin
        self.tasks = WholeTasks(self._spans, with_own(watch.prices))

    def close(self) -> None:
        """Let go of the store."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def step(self, now: float) -> bool:
        """Look at what is new; returns whether there may be more.

        Raises:
            StoreError: not now.
        """
        follower = self._followed()
        stretch = follower.after(self.place, _AT_ONCE)
        self.place = stretch.place
        for span in stretch.spans:
            self.tasks.hear(span, now)
        if self._watch.calls:
            self._tell(stretch.spans)
        self.tasks.count_quiet(now)
        return len(stretch.spans) == _AT_ONCE

    def _followed(self) -> Follower:
        if self._follower is not None and self._follower.gone:
            self.close()
            self.place = 0
        if self._follower is None:
            self._follower = Follower(self._path)
        return self._follower

    def _spans(self, task: TaskId) -> Sequence[Span]:
        return self._followed().task(task)

    def _tell(self, spans: Sequence[Span]) -> None:
        form = self._watch.log_format
        lines = [
            call_line(span, span.work, form) for span in spans if isinstance(span.work, ModelCall) and is_call(span)
        ]
        with suppress(OSError):  # a log that cannot be written must not end the rest
            for piece in pieces(lines):
                self._out.write(piece)
                self._out.flush()


def pieces(lines: Sequence[str]) -> Iterator[str]:
    """Whole lines in pieces that a pipe takes at once."""
    held, size = list[str](), 0
    for line in lines:
        length = len(line.encode(errors="replace")) + 1
        if held and size + length > _ATOMIC:
            yield "".join(held)
            held, size = [], 0
        held.append(line + "\n")
        size += length
    if held:
        yield "".join(held)


def main() -> None:
    """Watch until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # they reach the whole group; the gateway says when it is over
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    watch = msgspec.json.decode(sys.stdin.buffer.readline(), type=Watch)
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(watch.log_format))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("headway").setLevel(logging.INFO)
    over = threading.Event()
    threading.Thread(target=_until_the_end, args=(over,), daemon=True).start()
    with _alone(Path(watch.store), over) as may:
        if may:
            _watch(watch, over)


def _until_the_end(over: threading.Event) -> None:
    sys.stdin.buffer.read()
    over.set()


@contextmanager
def _alone(store: Path, over: threading.Event) -> Generator[bool]:
    """Within, no other observer works on the store; false where the end came first."""
    lock = os.open(store.with_name(f"{store.name}-observer"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        yield _locked(lock, over)
    finally:
        os.close(lock)


def _locked(lock: int, over: threading.Event) -> bool:
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if over.wait(_LOCK_PERIOD):
                return False
        else:
            return True


def _watch(watch: Watch, over: threading.Event) -> None:
    observer = Observer(watch, sys.stderr)
    exporter = None if watch.export is None else _exporter(watch, watch.export)
    thread = None
    if exporter is not None:
        thread = threading.Thread(target=_export, args=(exporter, over), daemon=True)
        thread.start()
    told = ""
    while True:
        last = over.is_set()
        more = _stepped(observer)
        page = "".join(f"{line}\n" for part in (observer.tasks, exporter) if part is not None for line in part.page())
        if page != told and not more:
            told = page
            _say(Told(page=page, place=observer.place))
        if last and not more:
            break
        if not more:
            over.wait(PERIOD)
    observer.close()
    if thread is not None:
        thread.join(_LAST_SECONDS + 1)


def _say(told: Told) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the gateway was killed: nobody listens, and what is left to do is done all the same
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), sys.stdout.fileno())


def _stepped(observer: Observer) -> bool:
    try:
        return observer.step(time.monotonic())
    except StoreError as error:
        _log.warning("the store cannot be watched now: %s", error, extra={"event": "observer_store"})
        observer.close()
        return False


def _exporter(watch: Watch, endpoint: Endpoint) -> Exporter:
    return Exporter(Path(watch.store), f"otlp {endpoint.url}", HttpPost(endpoint), SystemRandom(), watch.begin)


def _export(exporter: Exporter, over: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
    """Step after step; at the end, until nothing waits or the endpoint wants none, for some seconds at most."""
    while not over.is_set():
        over.wait(exporter.step())
    until = clock() + _LAST_SECONDS
    while clock() < until and exporter.step() == 0.0:
        pass
    exporter.close()


if __name__ == "__main__":
    main()
