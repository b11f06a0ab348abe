"""What tasks are held to: a task is good when it keeps all of its SLOs."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from headway.bench.spans import HeardTask
from headway.core.errors import BadInputError

_WRITTEN: Final = re.compile(r"(?P<figure>\w+)\s*(?:<=|≤)?\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>ms|s)")
_UNITS: Final = {"ms": 1e-3, "s": 1.0}


class Slo(Struct, frozen=True):
    """A figure and the most that it may be, in seconds."""

    figure: str
    most: float

    def kept(self, task: HeardTask) -> bool:
        """Whether ``task`` keeps it; one that failed, or of which the figure is unknown, does not."""
        if task.e2e is None:
            return False
        values = list(_FIGURES[self.figure](task))
        return bool(values) and all(value is not None and value <= self.most for value in values)


def first_visible(task: HeardTask) -> float | None:
    """Task TTFT: seconds from when it was to begin to the first text of its last call that had any.

    Which call speaks to a person is not said; the last one of the task does.
    """
    if not task.calls:
        return None
    at = task.calls[-1].heard.call.first_visible
    return None if at is None else at - task.played.intended


def ttfts(task: HeardTask) -> Iterator[float | None]:
    """Seconds to the first token of each call, from when it was to be sent."""
    for one in task.calls:
        first = one.heard.call.first_token
        yield None if first is None else first - one.played.intended


_FIGURES: Final[Mapping[str, Callable[[HeardTask], Iterator[float | None]]]] = {
    "task": lambda task: iter((task.e2e,)),
    "task_ttft": lambda task: iter((first_visible(task),)),
    "ttft": ttfts,
    "token_time": lambda task: (one.heard.token_time for one in task.calls),
}


def slo(text: str) -> Slo:
    """Read ``task 20s``, ``task_ttft 3s``, ``ttft 500ms`` or ``token_time 50ms``.

    Raises:
        BadInputError: it is none of these.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or found["figure"] not in _FIGURES:
        raise BadInputError(f"{text!r} is no SLO.", fix=f"Write e.g. 'task 20s'; figures are {', '.join(_FIGURES)}.")
    return Slo(found["figure"], float(found["value"]) * _UNITS[found["unit"]])
