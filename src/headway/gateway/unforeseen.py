"""Faults of our own, or of a plug-in, that nobody foresaw: told to the log once and to the client as a 500."""

import logging
import traceback
from typing import Final

from headway.gateway.responses import Failure, failure

_LOG: Final = logging.getLogger(__name__)


class Unforeseen:
    """Which exceptions were met so far.

    The log gets the place and the kind of each, once: the same place fails for every call, and those are counted by
    the metrics. It never gets an exception's message or arguments, which may hold what a prompt said.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, int | None]] = set()

    def met(self, error: Exception) -> Failure:
        """What to tell the client whose call met ``error``."""
        kind = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        place = (kind, frames[-1].filename, frames[-1].lineno)
        if place not in self._seen:
            self._seen.add(place)
            where = "".join(frames.format())
            _LOG.error("an unforeseen %s; further ones from the same place are not logged:\n%s", kind, where)
        return failure("internal_error", 500, f"The gateway failed with an unforeseen {kind}. See its log.")
