"""Names for tasks and spans: unique, not secret, and in the order of their making."""

import os
import random

from headway.core.clock import Clock


class Ids:
    """Makes ids from a clock and dice of its own; two gateways that write to one store never make the same.

    A task's id begins with the second it was made in. Tasks that run together so lie together in the store, whose
    pages then fill one after another: with ids that are random throughout each span touched a page of its own, and
    writing it cost about twice as much.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bits = random.Random(os.urandom(16)).getrandbits  # noqa: S311 - ids must be unique, not secret

    def task(self) -> str:
        """32 hex digits: 8 of the second since the epoch, 24 random ones. A W3C trace id."""
        return ((int(self._clock.now()) & 0xFFFFFFFF) << 96 | self._bits(96)).to_bytes(16).hex()

    def span(self) -> str:
        """16 random hex digits. A W3C span id."""
        return self._bits(64).to_bytes(8).hex()
