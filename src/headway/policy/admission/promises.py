"""Deadlines: what cannot be done in time is refused at once, and told when to come again."""

from collections import deque
from typing import Final, Literal

from msgspec import Struct

from headway.policy.order.waiting import Waiting
from headway.policy.route import RouteDecision

_SMOOTHING: Final = 0.1
_WINDOW: Final = 60.0
_MOST: Final = 10_000
_ENOUGH: Final = 5
_MARGIN: Final = 2.0
"""Little's law gives the mean; most tasks take less than two means."""


class Refused(Struct, frozen=True, kw_only=True):
    """A call cannot be served."""

    waiting: Waiting
    reason: str
    """In words for its caller."""
    cause: Literal["deadline", "no_replica"]
    decision: RouteDecision | None = None
    """What routing said, where no replica can take it."""
    retry_after: float | None = None
    """Seconds after which its deadline could be met; ``None``: waiting does not help."""


class Promises:
    """How long a call has to wait for a place, and how long a task takes under the load that there is.

    A place: from how fast the queue moved while somebody waited. A task: by Little's law, from how many there are and
    how fast they ended in the last minute; to be asked only while the fleet is full, for one that is not ends fewer
    than it could.
    """

    def __init__(self) -> None:
        self._ended: deque[float] = deque(maxlen=_MOST)
        """When the tasks of the last minute ended."""
        self._interval: float | None = None
        self._last: float | None = None
        """When the queue last moved and was not empty afterwards."""

    def sent(self, now: float, left: int) -> None:
        """The queue moved, and ``left`` are waiting still."""
        if self._last is not None:
            took = now - self._last
            self._interval = took if self._interval is None else self._interval + _SMOOTHING * (took - self._interval)
        self._last = now if left else None

    def ended(self, now: float) -> None:
        """A task has come to its end."""
        self._ended.append(now)

    def task(self, tasks: int, now: float) -> float:
        """Seconds from arrival to end for one more task beside ``tasks`` others; 0 where too few were seen to end."""
        while self._ended and now - self._ended[0] > _WINDOW:
            self._ended.popleft()
        if len(self._ended) < _ENOUGH:
            return 0.0
        return _MARGIN * (tasks + 1) * (now - self._ended[0]) / len(self._ended)

    def wait(self, ahead: int, now: float) -> float:
        """Seconds until ``ahead`` waiting calls are gone; 0 where the queue was never seen to move."""
        if self._interval is None or not ahead:
            return 0.0
        held_up = 0.0 if self._last is None else now - self._last - self._interval
        return ahead * self._interval + max(0.0, held_up)

    def late(self, waiting: Waiting, seconds: float, ahead: int, now: float) -> Refused | None:
        """Why ``waiting``, behind ``ahead`` others and then ``seconds`` in service, will be late, if it will."""
        if waiting.deadline is None:
            return None
        left, wait = waiting.deadline - now, self.wait(ahead, now)
        if wait + seconds <= left:
            return None
        if seconds > left:
            reason = f"its task has to be done in {left:.1f} s, and takes about {seconds:.1f} s without any waiting"
            return Refused(waiting=waiting, reason=reason, cause="deadline")
        reason = (
            f"its task has to be done in {left:.1f} s; {ahead} calls wait before it, which takes about {wait:.1f} s, "
            f"and it takes about {seconds:.1f} s itself"
        )
        return Refused(waiting=waiting, reason=reason, cause="deadline", retry_after=wait + seconds - left)
