"""The critical path: the segments that tile a task from end to end, each with its phase."""

from enum import StrEnum

from msgspec import Struct

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


class Segment(Struct, frozen=True):
    """One tile of the critical path; seconds from the task's start."""

    span: SpanId
    phase: Phase
    start: float
    end: float
