"""Which levers are worth a reader's time."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from headway.app.report.figures import UNKNOWN, at_least, dollars, plural
from headway.trace.levers import Lever

LEAST_SHARE: Final = 0.01
"""Of E2E: a lever that saves less is counted, not shown."""
MOST: Final = 6


class Shown(Struct, frozen=True):
    """The levers that a page shows, best first, and how many it leaves out."""

    levers: tuple[Lever, ...]
    more: int

    @property
    def rest(self) -> str:
        """What is said of those that are left out; empty if there are none."""
        if not self.more:
            return ""
        what = "change saves" if self.more == 1 else "changes save"
        least = f"{LEAST_SHARE:.0%}".replace("%", " %") if len(self.levers) < MOST else "the last of these"
        return f"{self.more} more {what} less than {least}."


def worth_showing(levers: Sequence[Lever]) -> Shown:
    """The first `MOST` of ``levers``, ranked best first, that save at least `LEAST_SHARE` of the task."""
    shown = tuple(lever for lever in levers if lever.share >= LEAST_SHARE)[:MOST]
    return Shown(shown, len(levers) - len(shown))


def beside_seconds(lever: Lever) -> str:
    """What else a lever saves, in words."""
    if lever.tokens == 0 and lever.cost == 0:
        return "same tokens and cost"
    tokens = at_least(lever.tokens, lever.tokens_least, lambda value: plural(int(value), "token"))
    cost = at_least(
        lever.cost, lever.cost_least, lambda value: f"{dollars(-value)} more" if value < 0 else dollars(value)
    )
    return f"{'tokens unknown' if tokens == UNKNOWN else tokens}, {'cost unknown' if cost == UNKNOWN else cost}"
