"""The one record: a timed piece of a task, whatever world it was measured in.

What is at its default is left out where a record is encoded: a sixth of its size in the store. Frozen values cannot
hold themselves, so Python's garbage collector need not look at them (``gc=False``).
"""

from typing import Final, Literal, NewType

from msgspec import Struct, field

from headway.core.money import MicroUsd
from headway.core.prompt import Part
from headway.core.task import Identity, SessionId, SpanId, TaskId
from headway.core.usage import EngineTimings, Usage

ErrorType = NewType("ErrorType", str)
"""A short stable word for what went wrong, e.g. ``upstream_closed`` (OTel ``error.type``)."""


HEDGED: Final = ErrorType("hedged")
"""A setback that is no failure: another replica, asked at the same time, began to answer first."""


class Itl(Struct, frozen=True, kw_only=True, gc=False):
    """Summary of the gaps between a stream's chunks, in seconds. One chunk is not always one token."""

    count: int
    mean: float
    p50: float
    p95: float
    max: float


class Candidate(Struct, frozen=True, gc=False):
    """One option that a policy weighed; the lowest score wins."""

    name: str
    score: float


class Receipt(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Why a decision was made."""

    policy: str
    winner: str
    reason: str
    candidates: tuple[Candidate, ...] = ()
    notes: tuple[str, ...] = ()
    """What else was decided on the way, a sentence each: other models, what a translation left out."""


class Setback(Struct, frozen=True, kw_only=True, gc=False):
    """An attempt at a call that failed, and after which another was made. Epoch seconds."""

    replica: str
    error: ErrorType
    start: float
    end: float


class ToolCallRef(Struct, frozen=True, gc=False):
    """A tool call as a response issued it."""

    id: str
    name: str


AnswerSource = Literal["memory", "stale", "flight", "shared", "semantic"]
"""Where an answer was that is given again: fresh in memory; past its freshness; another's call that was under way; kept
by another process; the answer to a question that means the same."""


class GivenAgain(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An answer that was kept of an earlier call and given again: no engine was asked, and nobody was paid."""

    source: AnswerSource
    made: float
    """When the engine gave it; epoch seconds."""
    usage: Usage
    """What the call that it was the answer to read and wrote."""
    seconds: float
    """What that call took."""
    cost: MicroUsd | None = None
    """What it cost; ``None``: unknown."""


UNKNOWN_MODEL: Final = "unknown"
"""What a model is called whose name is not on record."""


class ModelCall(Struct, frozen=True, kw_only=True, tag="call", omit_defaults=True, gc=False):
    """One request to a model. All times are epoch seconds on the recorder's clock; ``None`` is unknown.

    The marks are in order: span.start <= sent <= first_token <= last_token <= span.end.
    """

    model: str
    provider: str | None = None
    replica: str | None = None
    stream: bool | None = None
    queued: float | None = None
    """Seconds spent waiting in Headway's own queue, a part of [span.start, sent]."""
    sent: float | None = None
    """When the request was handed to the engine."""
    first_token: float | None = None
    """When the first non-empty content, reasoning or tool delta arrived; unknown where nothing was streamed."""
    first_visible: float | None = None
    """When the first text that a user can see (content, not reasoning, not tool arguments) arrived."""
    visible_by: float | None = None
    """When such a text was on record, where its arrival was not timed: the latest that ``first_visible`` can be."""
    shown: bool = False
    """Whether the record says that it had text for a person to see, even if it goes on to call tools."""
    last_token: float | None = None
    itl: Itl | None = None
    usage: Usage = field(default_factory=Usage)
    engine: EngineTimings | None = None
    finish_reason: str | None = None
    attempts: int | None = None
    """How often it was sent, 1 where no connection was had to send it; ``None``: hidden retries are possible."""
    setbacks: tuple[Setback, ...] = ()
    """What came before the last attempt: those that were sent, and those for which no connection was had."""
    sent_before: int | None = None
    """How often its caller had sent the same call before, each time in a span of its own; ``None``: it does not say."""
    tool_calls: tuple[ToolCallRef, ...] = ()
    cost: MicroUsd | None = None
    identity: Identity | None = None
    route: Receipt | None = None
    given_again: GivenAgain | None = None
    """The answer came from Headway's own cache, so ``usage`` and ``cost`` are 0 and it was sent to nobody."""
    prompt: tuple[Part, ...] | None = None
    """The messages that it was asked with, in order; unknown where the source did not keep them."""
    answer: Part | None = None


class ToolUse(Struct, frozen=True, kw_only=True, tag="tool", omit_defaults=True, gc=False):
    """A tool at work."""

    name: str
    call_id: str | None = None
    issued_by: SpanId | None = None
    """The model call whose response asked for it."""
    inferred: bool = False
    """True: not timed at the tool, but taken as the gap between response and next request."""
    failed: bool | None = None
    arguments: str | None = None
    """16 hex digits over what it was called with, whatever the order of the keys."""
    result: Part | None = None


class Retrieval(Struct, frozen=True, kw_only=True, tag="retrieval", omit_defaults=True, gc=False):
    """A look-up in a corpus: search, embedding of a query, reranking."""

    source: str | None = None
    results: int | None = None


class Step(Struct, frozen=True, kw_only=True, tag="step", omit_defaults=True, gc=False):
    """A piece of the agent's own structure: a task, an agent, a stage, a wrapper."""

    agent: str | None = None
    used: Usage | None = None
    """What the record says that all in it used together, where it does not say that of each call; so too the next."""
    cost: MicroUsd | None = None


class HumanWait(Struct, frozen=True, tag="human", gc=False):
    """A person was waited for; never latency."""


Work = ModelCall | ToolUse | Retrieval | Step | HumanWait
"""What a span did: a closed union; match on it and end with ``assert_never``."""


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A timed record. ``end`` is ``None`` while, or if for ever, unfinished."""

    task: TaskId
    id: SpanId
    parent: SpanId | None
    name: str
    """OTel GenAI span name: ``chat {model}``, ``execute_tool {tool}``, ``invoke_agent {agent}``."""
    start: float
    end: float | None
    work: Work
    session: SessionId | None = None
    error: ErrorType | None = None
    text: tuple[str, str] | None = None
    """Prompt and answer, only where the operator asked for them to be kept."""
    host: str | None = None
    """Whose clock its times are on, where the record says it; clocks of different hosts may disagree."""
    tenant: str | None = None
    """Whose call it is, by its id, where the gateway knows its callers by keys."""
    remarks: tuple[str, ...] = ()
    """What to know before trusting it and the others of its trace, where they were read from foreign telemetry."""
    awaited: bool = True
    """False: known not to be waited for by what started it, as the consumer of a message is not by its producer."""
