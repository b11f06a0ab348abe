"""Names for tasks and spans: unique, not secret, and in the order of their making."""

import os
import random

from headway.core.clock import Clock


class Ids:
    """Makes ids from a clock and dice of its own; two gateways that write to one store never make the same.

    A task's id begins with the time it was made at. Tasks that run together so lie together in the store, and new ones
    at the end of its index: with ids that are random throughout, or within each second, every span under load touched a
    page of its own, and writing it cost more than twice as much.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bits = random.Random(os.urandom(16)).getrandbits  # noqa: S311 - ids must be unique, not secret

    def task(self) -> str:
        """32 hex digits: 12 of the time in 1/65536 s since the epoch, 20 random ones. A W3C trace id."""
        made_at = int(self._clock.now() * 65536) & 0xFFFF_FFFF_FFFF
        return (made_at << 80 | self._bits(80)).to_bytes(16).hex()

    def span(self) -> str:
        """16 random hex digits. A W3C span id."""
        return self._bits(64).to_bytes(8).hex()
