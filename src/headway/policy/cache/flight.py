"""Single flight: of several calls with one question at the same time one is made, and the others get its answer."""

from typing import Generic, TypeVar

from headway.policy.cache.keys import CacheKey

Waiter = TypeVar("Waiter")


class Flights(Generic[Waiter]):
    """Who makes a call, and who waits for its answer.

    A leader always `land`s, however its call ends, and gets those who waited: with its answer they are done, without
    one each has to ask for itself, the first of them again as a leader.
    """

    def __init__(self) -> None:
        self._waiting: dict[CacheKey, dict[Waiter, None]] = {}

    def __len__(self) -> int:
        """Calls that are led now."""
        return len(self._waiting)

    @property
    def waiters(self) -> int:
        """Those who wait for them."""
        return sum(map(len, self._waiting.values()))

    def leads(self, key: CacheKey) -> bool:
        """Whether the asker is the one who makes the call; if not, it may `wait`."""
        if key in self._waiting:
            return False
        self._waiting[key] = {}
        return True

    def wait(self, key: CacheKey, waiter: Waiter) -> None:
        """Be among those who get the answer of the call under way.

        Raises:
            KeyError: nobody leads.
        """
        self._waiting[key][waiter] = None

    def leave(self, key: CacheKey, waiter: Waiter) -> None:
        """Wait no more: the client is gone, or its deadline is."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(waiter, None)

    def land(self, key: CacheKey) -> list[Waiter]:
        """The call has ended; those who waited, in the order they came."""
        return list(self._waiting.pop(key))
