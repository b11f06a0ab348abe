"""Where the time, the tokens and the money of one task went."""

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import Span
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.path import Phase, Segment


class Bar(Struct, frozen=True, kw_only=True):
    """One row of the waterfall: a span and the pieces it splits into; seconds from the task's start."""

    span: Span
    depth: int
    start: float
    end: float
    pieces: tuple[Segment, ...]
    """The span's own phases (hop, queue, prefill, decode …), on the critical path or not."""
    on_path: float
    """Seconds of this span that lie on the critical path."""
    slack: float
    """Seconds it could take longer without moving the task's end; 0 on the path."""


class Iteration(Struct, frozen=True, kw_only=True):
    """One term of the formula: a model call on the critical path and what came before the next one.

    ``hop + queue + prefill + decode + model + tools`` are its seconds on the path; over all iterations (plus
    ``Anatomy.lead_in``) they sum to E2E exactly, because they are the tiles of the path.
    """

    span: SpanId
    model: str
    hop: float
    queue: float
    prefill: float
    """TTFT less any queueing that the engine reported."""
    decode: float
    model_unsplit: float
    tools: float
    ttft: float | None
    tpot: float | None
    """(last token - first token) / (output_tokens - 1); unknown without both."""
    usage: Usage


class Anatomy(Struct, frozen=True, kw_only=True):
    """The whole account of one task. Seconds; ``None`` is unknown and ``unknowns`` says why."""

    task: TaskId
    session: SessionId | None
    started_at: float
    """Epoch seconds."""
    e2e: float
    n: int
    """Model calls on the task's loop, i.e. on the critical path."""
    calls: int
    """All model calls, sub-agents and parallel branches included."""
    path: tuple[Segment, ...]
    phases: dict[Phase, float]
    """Seconds on the critical path; they sum to ``e2e``."""
    iterations: tuple[Iteration, ...]
    lead_in: float
    """Seconds before the first model call of the path."""
    bars: tuple[Bar, ...]
    detached: tuple[SpanId, ...]
    """Work that outlived its parent; not in E2E."""
    task_ttft: float | None
    """First VISIBLE output of the task - the user's request."""
    last_call_ttft: float | None
    usage: Usage
    """Sums over all calls; a field is unknown when any call's is."""
    cached_share: float | None
    cost: MicroUsd | None
    failures: int
    unknowns: tuple[str, ...]
    """Plain sentences: what could not be known, and why."""
