"""The tasks under the names that a person gives: of archives as they are kept, of all other files as they are read."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from headway.core.errors import NotFoundError
from headway.trace.archive import Archive, is_archive
from headway.trace.filed import Row
from headway.trace.filing import Filing, Progress
from headway.trace.prices import PriceOf
from headway.trace.sources.intake import Intake
from headway.trace.workers import rarely_collected

_NAMED: Final = 3
"""Files that an error names; all are counted."""
Heard = Callable[[Progress], None]
"""Told now and then how far the reading has got."""
_MOST: Final = 8
"""Processes; with more, the one that gathers what they read is what all wait for."""


def processors() -> int:
    """How many processes may work at once on this machine, and are worth their start."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return min(len(allowed), _MOST)


class Gathering:
    """Tasks by name; iterate over `rows` once, then see what was left out.

    Args:
        names: archives, and whatever an `Intake` reads.
        prices: what tokens cost, where no cost was recorded.
        processes: how many may work at it.
        heard: told how far it has got.
    """

    def __init__(
        self, names: Sequence[str], prices: PriceOf, *, processes: int = 1, heard: Heard = lambda _: None
    ) -> None:
        self._names = names
        self._prices = prices
        self._archives = [Path(name) for name in names if is_archive(Path(name))]
        others = [name for name in names if not is_archive(Path(name))]
        self._filing = Filing(others, prices=prices, processes=processes, heard=heard) if others else None

    @property
    def intake(self) -> Intake | None:
        """The import; none where all comes from archives."""
        return None if self._filing is None else self._filing.intake

    def rows(self) -> Iterator[Row]:
        """Every task; its packed spans are at hand while it is the last one given.

        Raises:
            NotFoundError: a name means nothing, or nothing in the files is a task.
            BadInputError: a named file cannot be read.
            WorkerError: a process that helped died.
        """
        none = True
        for path in self._archives:
            with Archive(path, readonly=True) as archive, rarely_collected():
                for row in archive.rows(self._prices):
                    none = False
                    yield row
        if self._filing is not None:
            for row in self._filing.rows():
                none = False
                yield row
        if none:
            raise self._nothing()

    def _nothing(self) -> NotFoundError:
        intake = self.intake
        refused, skipped = ((), ()) if intake is None else (intake.refused, intake.skipped)
        reasons = [f"{one.name}: {one.why}" for one in refused[:_NAMED]]
        if len(refused) > _NAMED:
            reasons.append(f"{len(refused):,} files are in no known format.")
        reasons += [f"{skip.first}: {skip.reason} ({skip.count:,} in all)." for skip in skipped[:_NAMED]]
        if len(skipped) > _NAMED:
            reasons.append(f"There are {len(skipped):,} such reasons in all.")
        why = " ".join(reasons) or "The files are in a known format, but hold no call of a model or tool."
        return NotFoundError(f"Nothing in {', '.join(self._names)} is a task that can be explained.", fix=why)
