"""Calls under way that are made for nobody, so that stale answers are made anew; they end with the cache."""

from typing import Final, Protocol

from headway.gateway.responses import Failure, failure

_CLOSED: Final = failure("shutdown", 503, "The gateway is shutting down.")


class Renewing(Protocol):
    """One of them."""

    def cancel(self, problem: Failure) -> None:
        """End now, and be discarded."""
        ...


class Renewals:
    """All of them."""

    def __init__(self) -> None:
        self._under_way: set[Renewing] = set()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._under_way)

    def add(self, renewal: Renewing) -> None:
        """One has begun."""
        self._under_way.add(renewal)

    def discard(self, renewal: Renewing) -> None:
        """One has ended."""
        self._under_way.discard(renewal)

    def close(self) -> None:
        """End all."""
        for renewal in list(self._under_way):
            renewal.cancel(_CLOSED)
