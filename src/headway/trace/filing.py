"""Files become rows of a set: in this process where there is little to read, with the help of others else."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, cast

import msgspec
from msgspec import Struct

from headway.core.task import TaskId
from headway.trace.filed import Filed, put_away
from headway.trace.prices import PriceOf, price_for
from headway.trace.sources.document import Document, Part
from headway.trace.sources.intake import Intake, imported
from headway.trace.sources.registry import made
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece, Scattered, Source
from headway.trace.workers import Workers, hired, rarely_collected

WORTH_HELP: Final = 16 * 1024**2
"""Bytes from which on other processes are asked for help: they take half a second to come."""
PART: Final = 4 * 1024**2
"""Bytes that a helper reads at a time."""
BATCH: Final = 512 * 1024
"""Bytes of tasks that a helper works out at a time."""

Fragments = tuple[TaskId, list[bytes]]
_PIECE: Final = msgspec.msgpack.Decoder(Piece)
_FILED: Final = msgspec.msgpack.Decoder(list[Filed])
_ENCODER: Final = msgspec.msgpack.Encoder()


class Progress(Struct, frozen=True, kw_only=True):
    """How far a filing has got."""

    read: int
    """Bytes."""
    size: int
    """Bytes there are; grows while they are looked at."""
    tasks: int
    """Filed so far."""


class Filing:
    """All tasks under some names, each as a row; iterate over `rows` once, then see what the intake left out.

    Args:
        names: as for `Intake`.
        prices: what tokens cost, where no cost was recorded; must be picklable.
        processes: how many may work at it. The rows are the same, and in the same order, whatever their number.
        heard: told now and then how far it has got.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        prices: PriceOf = price_for,
        processes: int = 1,
        heard: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self.intake = Intake(names, self._take)
        self._prices = prices
        self._processes = processes
        self._heard = heard
        self._read = 0
        self._told = 0
        self._tasks = 0

    def rows(self) -> Iterator[Filed]:
        """Every task, in the order of its source.

        Raises:
            NotFoundError: a name means nothing.
            BadInputError: a named file cannot be read.
            WorkerError: a process that helped died.
        """
        with self.intake.claimed() as claimed, rarely_collected():
            yield from self._filed(claimed)
        self._tell()

    def _filed(self, claimed: Sequence[tuple[Source, list[Document]]]) -> Iterator[Filed]:
        if self._processes == 1 or self.intake.total_bytes < WORTH_HELP:
            for source, documents in claimed:
                for piece in source.read(documents, self.intake.skips):
                    yield self._counted(put_away(imported(piece, source), self._prices))
            return
        with hired(self._processes) as workers:
            for source, documents in claimed:
                yield from self._shared(workers, source, documents)

    def _shared(self, workers: Workers, source: Source, documents: Sequence[Document]) -> Iterator[Filed]:
        if source.scattered:
            tasks = self._scanned(workers, source.name, documents)
        else:
            pieces = source.read(documents, self.intake.skips)
            tasks = ((piece.task, [_ENCODER.encode(piece)]) for piece in pieces)
        for batch in workers.map(partial(_work_out, source.name, self._prices), _batches(tasks)):
            for filed in _FILED.decode(batch):
                yield self._counted(filed)

    def _scanned(self, workers: Workers, source: str, documents: Sequence[Document]) -> Iterator[Fragments]:
        found: dict[TaskId, list[bytes]] = {}
        for scanned in workers.map(partial(_scan, source), _shares(documents)):
            for task, fragments in scanned.tasks:
                found.setdefault(task, []).extend(fragments)
            self.intake.skips.join(scanned.skips)
            self._take(scanned.size)
        while found:
            task = next(iter(found))
            yield task, found.pop(task)

    def _counted(self, filed: Filed) -> Filed:
        self._tasks += 1
        if not self._tasks % 256:
            self._tell()
        return filed

    def _take(self, read: int) -> None:
        self._read += read
        if self._read - self._told >= 1 << 20:
            self._told = self._read
            self._tell()

    def _tell(self) -> None:
        self._heard(Progress(read=self._read, size=self.intake.total_bytes, tasks=self._tasks))


class _Scanned(Struct, frozen=True):
    """What a helper found in its share of the documents."""

    tasks: list[Fragments]
    skips: Skips
    size: int


def _shares(documents: Sequence[Document]) -> Iterator[list[Part]]:
    share: list[Part] = []
    for document in documents:
        for part in document.parts(PART):
            share.append(part)
            if sum(one.size for one in share) >= PART:
                yield share
                share = []
    if share:
        yield share


def _batches(tasks: Iterator[Fragments]) -> Iterator[list[Fragments]]:
    batch: list[Fragments] = []
    size = 0
    for task, fragments in tasks:
        batch.append((task, fragments))
        size += sum(map(len, fragments))
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _scan(name: str, share: list[Part]) -> _Scanned:
    skips = Skips()
    source = cast("Scattered", made(name))
    tasks = list(source.scan([part.document() for part in share], skips))
    return _Scanned(tasks, skips, sum(part.size for part in share))


def _work_out(name: str, prices: PriceOf, batch: list[Fragments]) -> bytes:
    source = made(name)
    found = (imported(_join(source, task, fragments), source) for task, fragments in batch)
    return _ENCODER.encode([put_away(one, prices) for one in found])


def _join(source: Source, task: TaskId, fragments: list[bytes]) -> Piece:
    if source.scattered:
        return cast("Scattered", source).join(task, fragments)
    (piece,) = fragments
    return _PIECE.decode(piece)
