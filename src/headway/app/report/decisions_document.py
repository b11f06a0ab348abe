"""Why calls went where they went, for machines: JSON, by the rules of `headway.app.report.document`."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from headway.core.span import ModelCall, Span


class Weighed(Struct, frozen=True, kw_only=True):
    """A replica that could have got the call."""

    name: str
    score: float
    """The lowest wins."""


class Failed(Struct, frozen=True, kw_only=True):
    """An attempt after which another was made."""

    replica: str
    error: str
    took_s: float


class CallDecisions(Struct, frozen=True, kw_only=True):
    """All that was decided about one call."""

    call: str
    task: str
    name: str
    started_at: float
    error: str | None
    policy: str | None
    """Who decided; ``None``: no decision was recorded."""
    winner: str | None
    """Where it went; empty: nowhere."""
    reason: str | None
    candidates: tuple[Weighed, ...]
    notes: tuple[str, ...]
    setbacks: tuple[Failed, ...]
    queued_s: float | None
    attempts: int | None


class Decisions(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway why --json``."""

    schema: str = "headway.why/1"
    calls: tuple[CallDecisions, ...]


def decisions_of(spans: Iterable[Span]) -> tuple[CallDecisions, ...]:
    """What was decided about the calls among ``spans``."""
    return tuple([_decisions(span, span.work) for span in spans if isinstance(span.work, ModelCall)])


def decisions_json(calls: Sequence[CallDecisions]) -> str:
    """A `Decisions` as JSON on one line."""
    return msgspec.json.encode(Decisions(calls=tuple(calls))).decode()


def _decisions(span: Span, call: ModelCall) -> CallDecisions:
    receipt = call.route
    return CallDecisions(
        call=span.id,
        task=span.task,
        name=span.name,
        started_at=span.start,
        error=span.error,
        policy=None if receipt is None else receipt.policy,
        winner=None if receipt is None else receipt.winner,
        reason=None if receipt is None else receipt.reason,
        candidates=() if receipt is None else tuple([Weighed(name=c.name, score=c.score) for c in receipt.candidates]),
        notes=() if receipt is None else receipt.notes,
        setbacks=tuple([Failed(replica=s.replica, error=s.error, took_s=s.end - s.start) for s in call.setbacks]),
        queued_s=call.queued,
        attempts=call.attempts,
    )
