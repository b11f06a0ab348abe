"""The orders that can be chosen."""

from collections import OrderedDict
from typing import Final

from headway.core.task import SpanId, TaskId
from headway.policy.order.waiting import AGING, LONGEST, Served, Waiting

_REMEMBERED: Final = 50_000
_SENIORITY: Final = 300.0
_SLACK: Final = 300.0
"""Seconds that a task without a deadline is given."""


class FirstCome:
    """First come, first served, by task: a task's later calls go before the first call of a later task.

    Started tasks hold memory, so ending them before others begin holds the least of it (Continuum's job-level order).
    Having come early is worth five minutes at most: key = max(arrival of the task, arrival of the call - 300).
    """

    name = "first-come"

    def __init__(self) -> None:
        self._came: OrderedDict[TaskId, float] = OrderedDict()

    def key(self, waiting: Waiting) -> float:
        """When its task came."""
        task = waiting.request.task
        if not task:
            return waiting.arrived
        came = self._came.get(task)
        if came is None:
            came = self._came[task] = waiting.arrived
            if len(self._came) > _REMEMBERED:
                self._came.popitem(last=False)
        return max(came, waiting.arrived - _SENIORITY)

    def observe(self, event: Served) -> None:
        """Nothing is learnt."""


class LeastAttained:
    """Least attained service of the task (Autellix's PLAS), with aging in place of its buckets.

    key = model seconds that the task has had + arrival / 8. What is the same for all at any moment is left out, so the
    order is that of (service - waiting / 8), and a key need not be computed again as time goes by.
    """

    name = "least-attained"

    def __init__(self) -> None:
        self._attained: OrderedDict[TaskId, float] = OrderedDict()

    def key(self, waiting: Waiting) -> float:
        """Service of its task, less what waiting makes up for."""
        return min(self._attained.get(waiting.request.task, 0.0), LONGEST) + AGING * waiting.arrived

    def observe(self, event: Served) -> None:
        """Add to the task's service."""
        if event.task:
            self._attained[event.task] = self._attained.get(event.task, 0.0) + event.seconds
            self._attained.move_to_end(event.task)
            if len(self._attained) > _REMEMBERED:
                self._attained.popitem(last=False)


class EarliestDeadline:
    """Earliest deadline of the task; a task without one is given five minutes from its call's arrival."""

    name = "earliest-deadline"

    def key(self, waiting: Waiting) -> float:
        """When its task has to be done."""
        return waiting.arrived + _SLACK if waiting.deadline is None else waiting.deadline

    def observe(self, event: Served) -> None:
        """Nothing is learnt."""


class LongestPath:
    """Longest observed path first: the call that most of its task's time already hangs on (after Autellix's ATLAS).

    The path of a call is the greatest of its parents' path + seconds, as far as it was seen: a task whose branches run
    side by side ends with its longest. key = arrival / 8 - path.
    """

    name = "longest-path"

    def __init__(self) -> None:
        self._ends: OrderedDict[SpanId, float] = OrderedDict()

    def key(self, waiting: Waiting) -> float:
        """Less for a longer path."""
        path = 0.0 if waiting.parent is None else self._ends.get(waiting.parent, 0.0)
        return AGING * waiting.arrived - min(path, LONGEST)

    def observe(self, event: Served) -> None:
        """A path has grown by a call."""
        before = 0.0 if event.parent is None else self._ends.get(event.parent, 0.0)
        self._ends[event.call] = before + event.seconds
        if len(self._ends) > _REMEMBERED:
            self._ends.popitem(last=False)
