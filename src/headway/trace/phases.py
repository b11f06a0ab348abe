"""What a span spends its own time on, as pieces that tile it."""

from collections.abc import Callable
from enum import StrEnum
from typing import assert_never

from headway.core.span import HumanWait, ModelCall, Retrieval, Step, ToolUse, Work


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


Piece = tuple[Phase, float, float]
"""A phase, its start and its end; seconds on one axis."""


def phase_of(work: Work) -> Phase:
    """The phase of a span's own time where it is not split any further."""
    match work:
        case ModelCall():
            return Phase.MODEL
        case ToolUse():
            return Phase.TOOL
        case Retrieval():
            return Phase.RETRIEVAL
        case Step():
            return Phase.HOP
        case HumanWait():
            return Phase.HUMAN
        case _:
            assert_never(work)


def is_derived(call: ModelCall) -> bool:
    """Whether the call's split rests on the engine's own timings instead of marks taken on the stream."""
    return call.first_token is None and call.engine is not None


def split(call: ModelCall, start: float, end: float, at: Callable[[float], float]) -> list[Piece]:
    """The phases of one call as pieces that tile ``[start, end]``; none is empty or negative.

    ``hop`` runs from the start to ``sent`` less Headway's own ``queued``, and from the last token to the end.
    ``queue`` is Headway's own and the engine's: TTFT - ``prefill_seconds``, never below 0. ``prefill`` is the rest of
    TTFT; ``decode`` runs from the first token to the last. A call that was not streamed arrives whole at its end, so
    with the engine's timings its decode is taken to end there, its prefill before that, and what is left since it
    was sent is queueing; with neither marks nor timings it is one ``model`` piece.

    Args:
        call: the call; its marks are on the recorder's clock.
        start: where the call starts, on the axis wanted.
        end: where it ends on that axis.
        at: from the recorder's clock to that axis.
    """
    queued = max(call.queued or 0.0, 0.0)
    sent = min(max(start + queued if call.sent is None else at(call.sent), start), end)
    marks = [(Phase.HOP, sent - queued), (Phase.QUEUE, sent)]
    engine = call.engine
    prefill = max(engine.prefill_seconds, 0.0) if engine is not None else 0.0
    if call.first_token is not None:
        first = min(max(at(call.first_token), sent), end)
        last = end if call.last_token is None else min(max(at(call.last_token), first), end)
        if engine is not None:
            marks.append((Phase.QUEUE, first - prefill))
        marks += ((Phase.PREFILL, first), (Phase.DECODE, last), (Phase.HOP, end))
    elif engine is not None:
        first = min(max(sent, end - engine.decode_seconds), end)
        marks += ((Phase.QUEUE, first - prefill), (Phase.PREFILL, first), (Phase.DECODE, end))
    else:
        marks.append((Phase.MODEL, end))
    return _tile(start, marks)


def clip(pieces: list[Piece], start: float, end: float) -> list[Piece]:
    """The part of ``pieces`` inside ``[start, end]``, which they cover."""
    return [(phase, max(a, start), min(b, end)) for phase, a, b in pieces if b > start and a < end]


def _tile(start: float, marks: list[tuple[Phase, float]]) -> list[Piece]:
    pieces: list[Piece] = []
    for phase, until in marks:
        if until <= start:
            continue
        if pieces and pieces[-1][0] is phase:
            pieces[-1] = (phase, pieces[-1][1], until)
        else:
            pieces.append((phase, start, until))
        start = until
    return pieces
