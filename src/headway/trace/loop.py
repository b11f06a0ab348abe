"""The task's loop: the model calls on its critical path, each with what came before the next one."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from headway.trace.path import Stretch
from headway.trace.phases import Phase


class Turn(Struct, frozen=True, gc=False):
    """One iteration: a model call on the path (the tree's index) and its stretches, in order of time.

    Failed tries that its caller made of the same call before it, and the pauses after them, are among its stretches.
    """

    call: int
    stretches: list[Stretch]

    @property
    def seconds(self) -> float:
        """Its share of E2E."""
        return sum(stretch.seconds for stretch in self.stretches)


def turns_of(walked: Iterable[Stretch], calls: Mapping[int, int]) -> tuple[list[Stretch], list[Turn]]:
    """The stretches before the first call of the path, then its turns; every stretch is in exactly one place.

    A call's own time belongs to its own turn; whatever else comes before the next call appears belongs to the turn
    begun last, a tool's time around its sub-agents' calls included.

    Args:
        walked: the critical path.
        calls: the path's calls, each with the last try of the same call that is on it: mostly itself.
    """
    lead_in: list[Stretch] = []
    turns: list[Turn] = []
    begun: dict[int, Turn] = {}
    latest = lead_in
    for stretch in walked:
        owner = calls.get(stretch.owner)
        if owner is None:
            latest.append(stretch)
        elif owner in begun:
            begun[owner].stretches.append(stretch)
        else:
            latest = [stretch]
            begun[owner] = Turn(owner, latest)
            turns.append(begun[owner])
    return lead_in, turns


NOTHING = dict.fromkeys(Phase, 0.0)


def spent(stretches: Iterable[Stretch]) -> dict[Phase, float]:
    """Seconds by phase, 0 for those that do not occur."""
    sums = NOTHING.copy()
    for stretch in stretches:
        for segment in stretch.segments:
            sums[segment.phase] += segment.end - segment.start
    return sums
