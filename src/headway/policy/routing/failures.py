"""Which replica could not serve a task's last call."""

from collections import OrderedDict
from typing import Final

from headway.core.fleet import ReplicaId, ReplicaLoad
from headway.core.task import TaskId
from headway.policy.route import RouteDone, RouteEvent

MOST: Final = 10_000
"""Tasks that are remembered; those that failed longest ago are forgotten first."""


class Failures:
    """A caller whose call failed asks again: the replica that failed it comes after all others, however busy they are.

    It is idle because it fails, and holds the beginning of the prompt, so it would look like the best of all.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[TaskId, ReplicaId] = OrderedDict()

    def spare(self, task: TaskId, loads: list[ReplicaLoad]) -> tuple[list[ReplicaLoad], tuple[str, ...]]:
        """``loads`` without the replica that could not serve the task's last call, unless that is the only one.

        Returns:
            Them, and what the receipt is to say of it.
        """
        failed = self._last.get(task)
        if failed is None:
            return loads, ()
        left = [load for load in loads if load.replica.id != failed]
        if not left or len(left) == len(loads):
            return loads, ()
        return left, (f"{failed} was left out, as it could not serve this task's last call.",)

    def observe(self, event: RouteEvent) -> None:
        """Remember how the task's last call ended."""
        if not isinstance(event, RouteDone) or not event.task:
            return
        if event.unserved:
            self._last[event.task] = event.replica
            self._last.move_to_end(event.task)
            if len(self._last) > MOST:
                self._last.popitem(last=False)
        elif not event.failed and self._last:
            self._last.pop(event.task, None)
