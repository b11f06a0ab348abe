"""What a span spends its own time on, as segments that tile it."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct, structs

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse, Work
from headway.core.task import SpanId


class Phase(StrEnum):
    """What the task was waiting for."""

    HOP = "hop"
    """Between the parties: the agent's own code, the network, the gateway."""
    RETRY = "retry"
    """Attempts at a call that failed, before the one that served it or that failed last, and the pauses after them."""
    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    MODEL = "model"
    """A model call whose first token was not timed: unsplit. So is the silence in which one broke off."""
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    HUMAN = "human"

    __hash__ = str.__hash__  # as what it equals has; an enum's own is another, and written in Python


# Looked up once: an attribute of an enum costs more than all else that a large task's loops do with it.
HOP, RETRY, QUEUE, PREFILL, DECODE = Phase.HOP, Phase.RETRY, Phase.QUEUE, Phase.PREFILL, Phase.DECODE
MODEL, TOOL, RETRIEVAL, HUMAN = Phase.MODEL, Phase.TOOL, Phase.RETRIEVAL, Phase.HUMAN


class Segment(Struct, frozen=True, gc=False):
    """One tile of a span or of the critical path; seconds from the task's start."""

    span: SpanId
    phase: Phase
    start: float
    end: float


OWN: dict[type[Work], Phase] = {
    ModelCall: MODEL,
    ToolUse: TOOL,
    Retrieval: RETRIEVAL,
    Step: HOP,
    HumanWait: HUMAN,
}
"""The phase of a span's own time where it is not split any further, for each kind of work."""


def is_derived(call: ModelCall) -> bool:
    """Whether the call's split rests on the engine's own timings instead of marks taken on the stream."""
    return call.first_token is None and call.engine is not None


def never_sent(call: ModelCall) -> bool:
    """Whether it was refused before anybody attempted to send it."""
    return call.attempts == 0 and not call.setbacks and call.sent is None and call.first_token is None


def unconnected(call: ModelCall) -> bool:
    """Whether it was attempted at a replica, the last one of several perhaps, and no connection was had to send it."""
    return call.replica is not None and bool(call.attempts) and call.sent is None and call.first_token is None


def engine_tpot(call: ModelCall) -> float | None:
    """TPOT by the engine's own timings, seconds: decode_seconds / (decode_tokens - 1).

    The engine's clock of decoding starts with the first token, so one gap fewer than tokens lies in it.
    """
    engine = call.engine
    if engine is None or engine.decode_tokens < 2:  # noqa: PLR2004 - a gap needs two
        return None
    return engine.decode_seconds / (engine.decode_tokens - 1)


def split(
    span: SpanId, call: ModelCall, start: float, end: float, at: Callable[[float], float], *, silent: bool = False
) -> tuple[Segment, ...]:
    """The phases of one call as segments that tile ``[start, end]``; none is empty or negative.

    ``hop`` runs from the start to ``sent`` less Headway's own ``queued``, and from the last token to the end.
    ``queue`` is Headway's own and the engine's: TTFT - ``prefill_seconds``, never below 0. ``prefill`` is the rest of
    TTFT; ``decode`` runs from the first token to the last. A call without a timed stream arrives whole at its end, so
    with the engine's timings its decode is taken to end there, its prefill before that, and what is left since it
    was sent is queueing; with neither marks nor timings it is one ``model`` segment, once sent. Attempts that failed
    before it was sent for the last time are ``retry``, and so is all of a call whose last attempt had no connection.
    One that was refused before any attempt is ``hop``, but for its time in Headway's queue.

    Args:
        span: the call's span.
        call: the call; its marks are on the recorder's clock.
        start: where the call starts, on the axis wanted.
        end: where it ends on that axis.
        at: from the recorder's clock to that axis.
        silent: the call broke off while more of its answer was waited for: after its last token it is ``model``.
    """
    if never_sent(call):
        queued = _within(start + (call.queued or 0.0), start, end)
        return _unsplit(span, (start, start, queued, queued)) + _unsplit(span, (queued, end, end, end))
    if call.setbacks or unconnected(call):
        return _failed_at_first(span, call, start, end, at, silent=silent)
    sent, waiting = _sending(call, start, end, at)
    engine, first, last = call.engine, call.first_token, call.last_token
    if first is not None:
        first = at(first)
        if not sent <= first <= end:
            first = _within(first, sent, end)
        last = end if last is None else at(last)
        if not first <= last <= end:
            last = _within(last, first, end)
    elif engine is not None:
        first, last = _within(end - engine.decode_seconds, sent, end), end
    else:
        return _unsplit(span, (start, waiting, sent, end))
    reading = sent if engine is None else _within(first - engine.prefill_seconds, sent, first)
    segments: list[Segment] = []
    if waiting > start:
        segments.append(Segment(span, HOP, start, waiting))
    if reading > waiting:
        segments.append(Segment(span, QUEUE, waiting, reading))
    if first > reading:
        segments.append(Segment(span, PREFILL, reading, first))
    if last > first:
        segments.append(Segment(span, DECODE, first, last))
    if end > last:
        segments.append(Segment(span, MODEL if silent else HOP, last, end))
    return tuple(segments)


def _failed_at_first(
    span: SpanId, call: ModelCall, start: float, end: float, at: Callable[[float], float], *, silent: bool
) -> tuple[Segment, ...]:
    """The phases of a call that was tried more than once, or never sent.

    An attempt that was made beside the one that served cost no time.
    """
    sent = call.sent
    setbacks = tuple([one for one in call.setbacks if sent is None or one.start < sent or one.end <= sent])
    if not setbacks and sent is not None:
        return split(span, structs.replace(call, setbacks=()), start, end, at, silent=silent)
    since = _within(at(setbacks[0].start), start, end) if setbacks else start
    served = bool(setbacks) and sent is not None and sent >= setbacks[-1].end
    until = _within(at(setbacks[-1].end), since, end) if served else end
    rows = ((HOP, start, since), (RETRY, since, until))
    before = tuple(Segment(span, phase, since, until) for phase, since, until in rows if until > since)
    return before + split(span, structs.replace(call, setbacks=()), until, end, at, silent=silent) if served else before


def _sending(call: ModelCall, start: float, end: float, at: Callable[[float], float]) -> tuple[float, float]:
    """When the call was sent to the engine, and since when it had waited for that in Headway's own queue."""
    queued, sent = call.queued or 0.0, call.sent
    sent = start + queued if sent is None else at(sent)
    if not start <= sent <= end:
        sent = _within(sent, start, end)
    return sent, _within(sent - queued, start, sent) if queued else sent


def _unsplit(span: SpanId, marks: tuple[float, float, float, float]) -> tuple[Segment, ...]:
    start, waiting, sent, end = marks
    rows = ((HOP, start, waiting), (QUEUE, waiting, sent), (MODEL, sent, end))
    return tuple(Segment(span, phase, since, until) for phase, since, until in rows if until > since)


def clip(segments: tuple[Segment, ...], start: float, end: float) -> tuple[Segment, ...]:
    """The part of ``segments`` inside ``[start, end]``, which they cover."""
    if segments[0].start == start and segments[-1].end == end:
        return segments
    return tuple(
        [
            Segment(s.span, s.phase, max(s.start, start), min(s.end, end))
            for s in segments
            if s.end > start and s.start < end
        ]
    )


# Called for odd marks only: for most calls of a large task a comparison in place is all that they need.
def _within(when: float, low: float, high: float) -> float:
    return low if when < low else min(when, high)
