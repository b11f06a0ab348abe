"""Whether a failed call is sent again to the same model, and when."""

from typing import Final, Literal

from msgspec import Struct

from headway.policy.resend.budget import RATIO, ResendBudget

UNSERVED: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses with which an engine says that it cannot serve now, whatever was asked. 529 is Anthropic's for overload."""

Reason = Literal[
    "attempts",  # sent as often as allowed
    "patience",  # the upstream asked for a longer wait than is allowed
    "deadline",  # there is no time for it
    "budget",  # too much is being sent again already
]


class RetryRules(Struct, frozen=True, kw_only=True):
    """How often and how fast."""

    attempts: int = 3
    """Sends of one model, the first among them."""
    base: float = 0.1
    """Seconds before the second send at most; doubled for each further one."""
    cap: float = 5.0
    """Seconds that such a wait is at most."""
    patience: float = 30.0
    """Seconds up to which an upstream's own Retry-After is waited for."""
    ratio: float = RATIO
    """Retries for each call, in the long run and all calls together."""


class Again(Struct, frozen=True):
    """Send it again to the same model in ``wait`` seconds."""

    wait: float


class GiveUp(Struct, frozen=True):
    """Send it to that model no more; ``reason`` says why."""

    reason: Reason


class Retries:
    """How often one call was sent to one model, and whether it is sent to it again.

    Waiting is "full jitter": a random share of min(cap, base · 2^n), so that calls that failed together do not come
    back together.
    """

    __slots__ = ("_rules", "_sends")

    def __init__(self, rules: RetryRules) -> None:
        self._rules = rules
        self._sends = 1

    def decide(
        self, retry_after: float | None, budget: ResendBudget, draw: float, now: float, deadline: float | None
    ) -> Again | GiveUp:
        """What to do after one more send that failed at ``now``; sending again is charged to the budget.

        Args:
            retry_after: seconds that whoever is asked next wishes to be left alone; ``None``: it said nothing.
            budget: of all calls.
            draw: a random number in [0, 1).
            now: epoch seconds.
            deadline: when the answer has to be there, epoch seconds.
        """
        rules = self._rules
        if self._sends >= rules.attempts:
            return GiveUp("attempts")
        wait = draw * min(rules.cap, rules.base * 2 ** (self._sends - 1)) if retry_after is None else retry_after
        if wait > rules.patience:
            return GiveUp("patience")
        if deadline is not None and now + wait >= deadline:
            return GiveUp("deadline")
        if not budget.take():
            return GiveUp("budget")
        self._sends += 1
        return Again(wait)
