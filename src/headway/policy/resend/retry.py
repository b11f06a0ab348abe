"""Whether a failed call is sent again, when, and to which model."""

from typing import Final, Literal

from msgspec import Struct

from headway.core.span import ErrorType
from headway.policy.resend.budget import ResendBudget

RETRIABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that may not come again: the caller's fault is not among them. 529 is Anthropic's for overload."""


Reason = Literal[
    "begun",  # the client has a part of the answer
    "not_idempotent",  # sent twice it might do something twice
    "permanent",  # the same would come again
    "attempts",  # sent as often as allowed
    "patience",  # the upstream asked for a longer wait than is allowed
    "budget",  # too much is being sent again already
    "deadline",  # there is no time for it
]


class RetryRules(Struct, frozen=True, kw_only=True):
    """How often and how fast."""

    attempts: int = 3
    """Sends of one model, the first among them."""
    base: float = 0.1
    """Seconds before the second send at most; doubled for each further one."""
    cap: float = 5.0
    patience: float = 30.0
    """An upstream's own Retry-After up to here is waited for; a longer one counts as a refusal."""


class Failure(Struct, frozen=True, kw_only=True):
    """One send that failed."""

    status: int | None = None
    """Of the upstream's answer; ``None``: there was none."""
    error: ErrorType | None = None
    retry_after: float | None = None
    """Seconds, as the upstream asked."""
    begun: bool = False
    """Bytes of an answer went to the client already: sending again would repeat them."""
    idempotent: bool = True
    """Sent twice it does nothing twice. A model call is; it is paid twice."""


class Again(Struct, frozen=True):
    """Send it again to the same model in ``wait`` seconds."""

    wait: float


class Fallback(Struct, frozen=True):
    """Send it to ``model`` now."""

    model: str


class GiveUp(Struct, frozen=True):
    """Tell the caller; ``reason`` says why no more is tried."""

    reason: Reason


Verdict = Again | Fallback | GiveUp


class Retries(Struct, kw_only=True):
    """One call's attempts: over the chain of its models, each a few times.

    Waiting is "full jitter": a random share of min(cap, base · 2^n), so that calls that failed together do not come
    back together. A fallback is not charged to the budget of retries of the same model: its load goes elsewhere.
    """

    chain: tuple[str, ...]
    """The model that was asked for, then those that may answer in its place."""
    rules: RetryRules = RetryRules()
    deadline: float | None = None
    """Epoch seconds."""
    sends: int = 1
    """Of the present model."""
    place: int = 0
    """Of the present model in the chain."""

    def decide(self, failure: Failure, budget: ResendBudget, draw: float, now: float) -> Verdict:
        """What to do after ``failure`` at ``now``; ``draw`` is a random number in [0, 1)."""
        fatal = _fatal(failure)
        if fatal is not None:
            return GiveUp(fatal)
        asked = failure.retry_after
        wait = draw * min(self.rules.cap, self.rules.base * 2 ** (self.sends - 1)) if asked is None else asked
        against = self._against(wait, budget, now)
        if against is None:
            self.sends += 1
            return Again(wait)
        return self._fall_back(against, now)

    def _against(self, wait: float, budget: ResendBudget, now: float) -> Reason | None:
        """Why the present model is not tried again; ``None``: it is, and that is charged."""
        if self.sends >= self.rules.attempts:
            return "attempts"
        if wait > self.rules.patience:
            return "patience"
        if self.deadline is not None and now + wait >= self.deadline:
            return "deadline"
        return None if budget.take() else "budget"

    def _fall_back(self, reason: Reason, now: float) -> Verdict:
        if self.deadline is not None and now >= self.deadline:
            return GiveUp("deadline")
        if self.place + 1 >= len(self.chain):
            return GiveUp(reason)
        self.place, self.sends = self.place + 1, 1
        return Fallback(self.chain[self.place])


def _fatal(failure: Failure) -> Reason | None:
    if failure.begun:
        return "begun"
    if not failure.idempotent:
        return "not_idempotent"
    return "permanent" if failure.status is not None and failure.status not in RETRIABLE else None
