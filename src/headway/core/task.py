"""Who a call belongs to: its task, its session, and how sure we are of that."""

from typing import Literal, NewType

from msgspec import Struct

TaskId = NewType("TaskId", str)
"""32 hex digits when Headway chose it (so it is a W3C trace id), else the caller's own printable string."""
SessionId = NewType("SessionId", str)
SpanId = NewType("SpanId", str)
"""16 hex digits, as in W3C trace context."""

Evidence = Literal[
    "explicit",  # a header named the task
    "tool_result",  # a tool result answers a tool call that we saw being issued
    "extends",  # the messages continue an earlier request and its response
    "sub_agent",  # opened by a parent's pending tool call
    "compaction",  # a rewritten history, same tools, adjacent in time
    "hand_over",  # another agent's answer is a new message here
    "session",  # a header named the session, in which one task was running
    "new",  # nothing matched: a new task
]


class PendingTool(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A tool call that a response issued and a later request answered: the gap between is tool time."""

    call_id: str
    name: str
    span_id: SpanId
    issued_by: SpanId
    """Span of the model call whose response asked for the tool."""
    issued_at: float
    """When that response ended; epoch seconds."""
    failed: bool | None = None
    """Whether the tool reported an error; unknown on wires that do not say."""


class Identity(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The task that a call was assigned to, and why."""

    task: TaskId
    session: SessionId
    evidence: Evidence
    confidence: float
    """1.0 for explicit and exact evidence; below that the assignment is inferred."""
    rivals: int = 0
    """Other sessions that are open and fit as well: it was assigned to the one that was used last."""
    parent: SpanId | None = None
    """Span that caused this call: a pending tool call (sub-agent) or the caller's own span (traceparent)."""
    opens_task: bool = False
    """First call of its task: the user's request."""
    human_wait: float | None = None
    """Seconds between the session's previous answer and this request, when a person was waited for."""
    tools: tuple[PendingTool, ...] = ()
    """Tool calls that this request brings the results of."""
