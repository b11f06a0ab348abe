"""What OpenHands keeps of a conversation, in both of its generations, as far as it matters here."""

from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta, Raw, Struct, field

from headway.core.usage import Usage
from headway.trace.sources.fields.completions import Count, Response, inclusive

PASSED_OVER: Final = frozenset(
    {
        "Condensation",
        "CondensationRequest",
        "CondensationSummaryEvent",
        "ConversationStateUpdateEvent",
        "HookExecutionEvent",
        "InterruptEvent",
        "LLMCompletionLogEvent",
        "PauseEvent",
        "StreamingDeltaEvent",
        "SystemPromptEvent",
        "TokenEvent",
    }
)
"""Kinds of events that tell of no work; some of them are looked into."""


class Tokens(Struct):
    """Token counts, of one call or of all so far."""

    model: str = ""
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    per_turn_token: Count = 0
    """Prompt and completion of the last call alone."""
    response_id: str = ""

    def usage(self) -> Usage:
        """The same in canonical words."""
        return inclusive(
            self.prompt_tokens,
            self.completion_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
        )


class Latency(Struct):
    """How long a call took."""

    latency: Annotated[float, Meta(ge=0)]
    response_id: str = ""
    model: str = ""


class Cost(Struct):
    """What a call cost, in US dollars."""

    cost: float | None = None


class Metrics(Struct):
    """What one use of a model came to so far."""

    model_name: str = "unknown"
    accumulated_cost: float | None = None
    accumulated_token_usage: Tokens | None = None
    token_usages: tuple[Tokens, ...] = ()
    response_latencies: tuple[Latency, ...] = ()
    costs: tuple[Cost, ...] = ()


class Stats(Struct):
    """Metrics by what a model is used for, as ``default`` and ``condenser``."""

    usage_to_metrics: dict[str, Metrics] = field(default_factory=dict[str, Metrics])


class State(Struct):
    """``base_state.json``, or the value of an event that carries all of it."""

    id: str | None = None
    stats: Stats = field(default_factory=Stats)


class Function(Struct):
    """A tool call."""

    name: str | None = None
    arguments: object = None


class Outcome(Struct):
    """What a tool brought back."""

    content: object = None
    is_error: bool = False
    exit_code: int | None = None


class Said(Struct):
    """A message."""

    role: str | None = None
    content: object = None


class Event(Struct):
    """An event of generation 1."""

    kind: str
    id: str
    timestamp: str
    source: str | None = None
    key: str | None = None
    value: Raw = Raw()
    thought: object = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_call: Function | None = None
    llm_response_id: str | None = None
    action_id: str | None = None
    observation: Outcome | None = None
    llm_message: Said | None = None
    system_prompt: object = None
    error: str | None = None
    code: str | None = None
    rejection_source: str | None = None


class ToolCallMetadata(Struct):
    """The answer that an action was taken from."""

    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: Response | None = None


class OldEvent(Struct):
    """An event of generation 0: an action or an observation."""

    id: int
    timestamp: str
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    cause: int | None = None
    message: object = None
    content: object = None
    args: object = None
    extras: object = None
    tool_call_metadata: ToolCallMetadata | None = None


def is_old(found: dict[str, object]) -> bool:
    """Whether it is an event of generation 0."""
    return {"id", "timestamp", "source", "message"} <= found.keys() and bool(found.keys() & {"action", "observation"})


def is_event(found: dict[str, object]) -> bool:
    """Whether it is an event of generation 1."""
    kind = found.get("kind")
    known = isinstance(kind, str) and (kind.endswith(("Event", "Observation")) or kind in PASSED_OVER)
    return known and {"id", "timestamp", "source"} <= found.keys()


def is_state(found: dict[str, object]) -> bool:
    """Whether it is the state of a conversation of generation 1."""
    stats = found.get("stats")
    return (
        isinstance(stats, dict)
        and "usage_to_metrics" in cast("dict[str, object]", stats)
        and {"id", "agent", "workspace"} <= found.keys()
    )


EVENT: Final = msgspec.json.Decoder(Event)
OLD_EVENT: Final = msgspec.json.Decoder(OldEvent)
STATE: Final = msgspec.json.Decoder(State)
