"""Routing: what a policy is asked, what it answers, and what it is told afterwards."""

from typing import Literal, Protocol

from msgspec import Struct

from headway.core.fleet import FleetView, Replica, ReplicaId
from headway.core.span import Receipt
from headway.core.task import SessionId, SpanId, TaskId
from headway.policy.lengths import Prefix

Refusal = Literal[
    "unknown_model",  # no replica serves it
    "unhealthy",  # those that do are all down, or there is none at all
    "excluded",  # those that are up were all tried for this call already
]


class RouteRequest(Struct, frozen=True, kw_only=True, gc=False):
    """What a routing policy may know of a call. What is at its default is unknown."""

    model: str
    task: TaskId
    excluded: frozenset[ReplicaId] = frozenset()
    """Replicas that the call cannot go to: tried already, or closed to it by admission."""
    call: SpanId = SpanId("")
    session: SessionId = SessionId("")
    prompt: tuple[Prefix, ...] = ()
    """Shortest prefix first; the last one is the whole prompt. The digests begin with the tenant and the model, so that
    no two of them share a prefix."""
    output_tokens: int | None = None
    """Expected length of the answer."""
    stream: bool = False
    """Whether its first token will be seen."""
    draw: float = 0.0
    """A number in [0, 1) that the caller drew, for policies that toss a coin."""


class RouteDecision(Struct, frozen=True, kw_only=True, gc=False):
    """The replica to send the call to, and why; no replica: ``receipt.reason`` says what stands in the way."""

    replica: Replica | None
    receipt: Receipt
    refusal: Refusal | None = None
    """Set where there is no replica."""


class RouteSent(Struct, frozen=True, kw_only=True, gc=False):
    """A call was handed to a replica."""

    replica: ReplicaId
    task: TaskId
    at: float | None = None
    """Epoch seconds, here and below; with it and ``request`` a policy can learn from the call."""
    request: RouteRequest | None = None
    """What was decided on."""


class RouteStarted(Struct, frozen=True, kw_only=True, gc=False):
    """The first token of a call's answer came."""

    replica: ReplicaId
    call: SpanId
    at: float


class RouteDone(Struct, frozen=True, kw_only=True, gc=False):
    """A call's answer ended, well or not."""

    replica: ReplicaId
    task: TaskId
    failed: bool
    unserved: bool = False
    """It failed because the replica could not serve it: not for what was asked, nor because the caller left."""
    call: SpanId = SpanId("")
    at: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    """Those of the input that the engine says it took from its cache."""
    output_tokens: int | None = None
    prefill: tuple[int, float] | None = None
    """Tokens and seconds of prefill, where the engine measured them."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the answer calls; with none the task may be over."""


class RouteLost(Struct, frozen=True, kw_only=True, gc=False):
    """A replica went down or away: what it had computed is gone."""

    replica: ReplicaId


class RouteElsewhere(Struct, frozen=True, kw_only=True, gc=False):
    """Another worker has sent a call to a replica, which now holds its prompt."""

    replica: ReplicaId
    session: str
    """What is kept together; empty: unknown."""
    at: float
    """Epoch seconds."""
    prompt: tuple[Prefix, ...]
    """As in `RouteRequest`."""


RouteEvent = RouteSent | RouteStarted | RouteDone | RouteLost | RouteElsewhere


class RoutePolicy(Protocol):
    """Decides where calls go. Registered by entry point in the group ``headway.route_policies``.

    A policy does no I/O, reads no clock and is never called from two threads at once. It passes over events that it
    has no use for. Where it has the attribute ``wants_all = True``, requests and events come with all that is known;
    else, where nothing else needs that, requests name the model and the task alone, and events come for calls sent and
    done without times and tokens.
    """

    def decide(self, request: RouteRequest, view: FleetView, now: float) -> RouteDecision:
        """The replica for ``request`` at ``now`` (epoch seconds)."""
        ...

    def observe(self, event: RouteEvent) -> None:
        """Learn what became of a decision."""
        ...
