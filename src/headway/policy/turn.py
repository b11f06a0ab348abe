"""One call as identity remembers it: digests and times, no prompts.

Nothing here points back at what points at it, so the garbage collector need not walk the tens of thousands of calls
that are remembered (``gc=False``).
"""

from typing import Literal

from msgspec import Struct

from headway.core.task import Evidence, SessionId, SpanId, TaskId
from headway.policy.lengths import Prefix
from headway.policy.messages import Utterance
from headway.policy.phrases import Piece


class OpenTool(Struct, eq=False, kw_only=True, gc=False):
    """A tool call that an answer issued; open until a request brings its result."""

    call_id: str
    name: str
    span: SpanId
    delivered: bool = False
    failed: bool | None = None
    prompts: tuple[int, ...] = ()
    """Digests of the texts in its arguments that a sub-agent may be sent, where other workers are told of them."""
    keys: tuple[int, ...] = ()
    """Under which its arguments can be found while it is open."""
    charge: int = 0
    """Bytes that its arguments take while it is open."""


class Turn(Struct, eq=False, kw_only=True, gc=False):
    """A call and its answer. Two turns are the same only if they are the same object."""

    span: SpanId
    tenant: str
    task: TaskId
    session: SessionId
    opened: float
    closed: float | None = None
    state: Literal["in_flight", "answered", "failed"] = "in_flight"
    raw: tuple[int, bytes] | None = None
    """Length and digest of the history's bytes, without the closing bracket; ``None`` where the history is short."""
    chain: int | None = None
    """Digest of the history without the assistant's messages; ``None`` if it could not be read."""
    said: int = 0
    """Digest of what the assistant said in the history."""
    root: int | None = None
    """The chain up to the first message of a user."""
    agent: int | None = None
    """Digest of the system messages and the tools: which agent this is; ``None`` if it has neither."""
    specific: int = 0
    """Characters of the history that are not system messages: how much there is to recognise it by."""
    parent: SpanId | None = None
    evidence: Evidence = "new"
    """What tied it to its task, apart from headers."""
    descends: bool = False
    """Recognised by its history, so an identical request is a repetition and not somebody else's."""
    opener: str | None = None
    """How the machine-made messages of this history begin, once there was one."""
    answer: Utterance | None = None
    calls: int | None = None
    """The `canonical` digest of the answer's tool calls; ``None`` if there were none."""
    tools: tuple[OpenTool, ...] = ()
    continued: bool = False
    """A later request was taken for its continuation."""
    passages: tuple[Piece, ...] = ()
    """The texts of its answer that can be found."""
    prompt: tuple[Prefix, ...] = ()
    """Its history, where somebody wants that measured; a later turn that continues it takes this over."""
    seed: int = 0
    """With what the digests of ``prompt`` begin."""
    model: str = ""
    """Which was asked for, where that is wanted."""
    size: int = 0
    """Characters of ``prompt``, tools included."""
    charge: int = 0
    """Bytes that it is accounted for, its texts and its open tools apart."""
