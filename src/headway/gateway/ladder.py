"""The tiers along which one call may be repeated, what makes that so, and how often it was."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from headway.gateway.exposition import family
from headway.policy.models.catalog import Alias

NOWHERE: Final = "none"
"""The tier to which a call was repeated whose answer was found wanting all the same: there is no better one."""


class Escalations:
    """How often calls were repeated, and whom not to ask how likely its tokens were; all calls of a gateway share it.

    Labels are bounded: all but numbers are names that the operator wrote down.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str, str]] = Counter()
        """By the name asked for, the tiers before and after, and why."""
        self.unjudged = 0
        """Answers that a judge was asked about, and gave no score."""
        self.unwilling: set[str] = set()
        """Models that refuse requests for logprobs."""

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        if self.counts:
            yield from family(
                "headway_escalations_total",
                "counter",
                "Calls repeated at a better tier, by the name asked for and by what counted against the first answer.",
                [
                    ({"name": name, "from": before, "to": after, "signal": signal}, count)
                    for (name, before, after, signal), count in self.counts.items()
                ],
            )
        if self.unjudged:
            yield from family(
                "headway_judge_silent_total", "counter", "Answers that the judge gave no score.", [({}, self.unjudged)]
            )


class Rung(Struct, frozen=True):
    """A tier, and the models of it that may answer, best first."""

    tier: str
    models: tuple[str, ...]


class Ladder(Struct, frozen=True):
    """Of one call: the tiers above the one that answers it first."""

    alias: Alias
    """Of whose ladder only those tiers are left that permit the call."""
    tier: str
    above: tuple[Rung, ...]
    notes: tuple[str, ...]
    """Which were left out, and why."""
    escalations: Escalations

    @property
    def judge(self) -> str | None:
        """The model that is asked about answers, where one is."""
        return None if self.alias.doubts.judge is None else self.alias.judge
