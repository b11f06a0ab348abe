"""When an answer is not good enough, and what is asked next."""

from typing import Final, Literal

from msgspec import Struct

from headway.policy.models.catalog import Alias
from headway.policy.models.doubts import Doubts

Signal = Literal["uncertain", "schema", "refused", "judged"]
"""Its tokens were improbable; it breaks the schema that was asked for; the model declined; a judge said no."""

_WORDS: Final[dict[Signal, str]] = {
    "uncertain": "its tokens were less probable than allowed",
    "schema": "it breaks the schema that was asked for",
    "refused": "the model declined to answer",
    "judged": "the judge found it wanting",
}


class Answered(Struct, frozen=True, kw_only=True):
    """What is known of an answer; ``None``: not known, and no doubt is cast by it."""

    logprobs: tuple[float, ...] | None = None
    keeps_schema: bool | None = None
    refused: bool | None = None
    score: float | None = None
    """A judge's, 0 to 1."""


class Escalation(Struct, frozen=True, kw_only=True):
    """What to do with an answer."""

    to: str | None
    """The tier to ask next; ``None``: the answer stands."""
    signals: tuple[Signal, ...]
    reason: str


def escalate(answered: Answered, doubts: Doubts, alias: Alias, tier: str | None) -> Escalation:
    """Whether an answer of ``tier`` stands.

    It does where nothing counts against it and where there is no better tier; what counted is told either way.
    """
    signals = _signals(answered, doubts)
    if not signals:
        return Escalation(to=None, signals=(), reason="nothing counts against it")
    told = " and ".join(_WORDS[signal] for signal in signals)
    ladder = alias.escalates
    above = ladder[ladder.index(tier) + 1 :] if tier in ladder else ()
    if not above:
        return Escalation(to=None, signals=signals, reason=f"{told}, but there is no better tier")
    return Escalation(to=above[0], signals=signals, reason=told)


def _signals(answered: Answered, doubts: Doubts) -> tuple[Signal, ...]:
    signals: list[Signal] = []
    logprobs = answered.logprobs
    if doubts.mean_logprob is not None and logprobs and sum(logprobs) / len(logprobs) < doubts.mean_logprob:
        signals.append("uncertain")
    if doubts.schema and answered.keeps_schema is False:
        signals.append("schema")
    if doubts.refused and answered.refused:
        signals.append("refused")
    if doubts.judge is not None and answered.score is not None and answered.score < doubts.judge:
        signals.append("judged")
    return tuple(signals)
