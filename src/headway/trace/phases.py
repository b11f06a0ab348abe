"""What a span spends its own time on, as segments that tile it."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse, Work
from headway.core.task import SpanId


class Phase(StrEnum):
    """What the task was waiting for."""

    HOP = "hop"
    """Between the parties: the agent's own code, the network, the gateway."""
    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    MODEL = "model"
    """A model call whose first token was not timed: unsplit."""
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    HUMAN = "human"


# Looked up once: an attribute of an enum costs more than all else that a large task's loops do with it.
HOP, QUEUE, PREFILL, DECODE = Phase.HOP, Phase.QUEUE, Phase.PREFILL, Phase.DECODE
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


def split(span: SpanId, call: ModelCall, start: float, end: float, at: Callable[[float], float]) -> tuple[Segment, ...]:
    """The phases of one call as segments that tile ``[start, end]``; none is empty or negative.

    ``hop`` runs from the start to ``sent`` less Headway's own ``queued``, and from the last token to the end.
    ``queue`` is Headway's own and the engine's: TTFT - ``prefill_seconds``, never below 0. ``prefill`` is the rest of
    TTFT; ``decode`` runs from the first token to the last. A call without a timed stream arrives whole at its end, so
    with the engine's timings its decode is taken to end there, its prefill before that, and what is left since it
    was sent is queueing; with neither marks nor timings it is one ``model`` segment, once sent.

    Args:
        span: the call's span.
        call: the call; its marks are on the recorder's clock.
        start: where the call starts, on the axis wanted.
        end: where it ends on that axis.
        at: from the recorder's clock to that axis.
    """
    queued, engine = call.queued or 0.0, call.engine
    sent = _within(start + queued if call.sent is None else at(call.sent), start, end)
    waiting = _within(sent - queued, start, sent) if queued else sent
    last = end
    if call.first_token is not None:
        first = _within(at(call.first_token), sent, end)
        if call.last_token is not None:
            last = _within(at(call.last_token), first, end)
    elif engine is not None:
        first = _within(end - engine.decode_seconds, sent, end)
    else:
        return _tile(span, (HOP, QUEUE, MODEL), (start, waiting, sent, end))
    reading = sent if engine is None else _within(first - engine.prefill_seconds, sent, first)
    return _tile(span, (HOP, QUEUE, PREFILL, DECODE, HOP), (start, waiting, reading, first, last, end))


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


def _within(when: float, low: float, high: float) -> float:
    return low if when < low else min(when, high)


def _tile(span: SpanId, phases: tuple[Phase, ...], marks: tuple[float, ...]) -> tuple[Segment, ...]:
    return tuple([Segment(span, phase, a, b) for phase, a, b in zip(phases, marks, marks[1:], strict=False) if b > a])
