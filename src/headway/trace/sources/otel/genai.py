"""From one span as OpenTelemetry's tools record it, in whatever dialect, to one canonical span.

OTLP, Jaeger and Tempo differ in how they write a span down, not in what it says: each importer makes a `RawSpan` of it
and asks `canonical`. What can only be told with the whole trace at hand (retries, a stream's end that was written
later, the tools of conventions that had none) is `headway.trace.sources.otel.whole`'s part.
"""

from functools import lru_cache
from math import inf
from typing import Final, cast

from headway.core.money import MicroUsd
from headway.core.span import UNKNOWN_MODEL, ErrorType, HumanWait, ModelCall, Retrieval, Span, Step, ToolUse, Work
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.sources.digests import arguments_digest, part
from headway.trace.sources.fields.messages import Parts, decoded, plain
from headway.trace.sources.fields.scalars import NO_COUNT, NO_NUMBER, count, impossible, number, text, truth
from headway.trace.sources.otel.attributes import (
    EXCLUSIVE_NAMES,
    FIRST_TOKEN_EVENTS,
    RESULTS,
    Fact,
    Facts,
    facts,
    host,
)
from headway.trace.sources.otel.exchange import SILENT, Exchange, asked_model, digested, exchange
from headway.trace.sources.otel.marks import restored
from headway.trace.sources.otel.operations import NAMES, OPERATIONS, PROVIDERS, Role
from headway.wire.otel import RawSpan

_COUNTS: Final[tuple[Fact, ...]] = ("input", "output", "uncached", "cache_read", "cache_write", "reasoning")
_CACHED: Final[tuple[Fact, ...]] = ("cache_read", "cache_write")
_NUMBERS: Final[tuple[Fact, ...]] = ("ttft", "queue", "cost", "attempt")
_SLOP: Final = 0.001
"""Seconds by which a mark may lie after its span's end: times are rounded."""


def canonical(raw: RawSpan, parts: Parts) -> Span:
    """The span in canonical words. Never raises: what makes no sense is left unknown.

    Args:
        raw: the span as recorded.
        parts: one for a whole import, so that each message is digested once.
    """
    return interpret(raw, facts(raw.attributes), parts)


def interpret(raw: RawSpan, said: Facts, parts: Parts) -> Span:
    """As `canonical`, for a caller that has the span's facts already."""
    role = role_of(raw, said)
    return interpret_as(role, raw, said, parts, exchange(raw, said) if role == "call" else SILENT)


def interpret_as(role: Role, raw: RawSpan, said: Facts, parts: Parts, exchanged: Exchange) -> Span:
    """As `interpret`, for a caller that knows the span's role, and the messages where it is a call."""
    match role:
        case "call":
            work: Work = _call(raw, said, parts, exchanged)
            name = f"{_call_word(said)} {work.model}"
        case "tool":
            work = _tool(raw, said)
            name = f"execute_tool {work.name}"
        case "agent":
            agent = _agent(raw, said)
            work = Step(agent=agent)
            name = raw.name if agent is None else f"invoke_agent {agent}"
        case "retrieval":
            work = _retrieval(raw, said)
            name = raw.name if work.source is None else f"retrieval {work.source}"
        case "human":
            work, name = HumanWait(), "human_wait"
        case "step":
            work, name = Step(), raw.name
    session = text(said["session"]) if "session" in said else None
    return Span(
        task=TaskId(raw.trace),
        id=SpanId(raw.id),
        parent=None if raw.parent is None else SpanId(raw.parent),
        name=name,
        start=raw.start,
        end=raw.end,
        work=work,
        session=None if session is None else SessionId(session),
        error=_error(raw, said),
        host=host(raw.resource) or host(raw.attributes),  # some processors stamp each span with it
        awaited=raw.awaited and not ("awaited" in said and truth(said["awaited"]) is False),
    )


def role_of(raw: RawSpan, said: Facts) -> Role:
    """What kind of work it did: by its operation, else its name, else by what it says that only such work says."""
    word = said.get("operation")
    if isinstance(word, str):
        role = OPERATIONS.get(word) or OPERATIONS.get(word.strip('"').lower())
        if role is not None:
            return role
    role = NAMES.get(raw.name) or NAMES.get(raw.name.partition(" ")[0])
    if role is not None:
        return role
    if "tool" in said:
        return "tool"
    if "ttft" in said or "queue" in said:
        return "call"
    if "model" in said and ("input" in said or "output" in said or "provider" in said):
        return "call"
    return "call" if asked_model(said) else "step"


def _call_word(said: Facts) -> str:
    word = said.get("operation")
    return word if isinstance(word, str) and word in {"generate_content", "text_completion"} else "chat"


def _call(raw: RawSpan, said: Facts, parts: Parts, exchanged: Exchange) -> ModelCall:
    prompt, answer = digested(exchanged, parts)
    queued = number(said["queue"]) if "queue" in said else None
    sent = None if queued is None or not 0 <= queued <= _length(raw) else raw.start + queued
    call = ModelCall(
        model=text(said.get("model")) or asked_model(said) or UNKNOWN_MODEL,
        provider=_provider(said),
        stream=_stream(said),
        queued=None if sent is None else queued,
        sent=sent,
        first_token=_first_token(raw, said),
        usage=_usage(raw, said),
        finish_reason=text(said.get("finish")) or answer.finish,
        attempts=(count(said["attempt"]) or None) if "attempt" in said else None,
        tool_calls=answer.calls,
        cost=_cost(said["cost"]) if "cost" in said else None,
        prompt=prompt,
        answer=answer.part,
    )
    return restored(call, said["marks"]) if "marks" in said else call


def _cost(told: object) -> MicroUsd | None:
    held = decoded(told)
    dollars = number(facts(cast("dict[str, object]", held)).get("cost") if isinstance(held, dict) else held)
    return None if dollars is None or dollars < 0 else MicroUsd(int(dollars * 1_000_000 + 0.5))


def _length(raw: RawSpan) -> float:
    return inf if raw.end is None else raw.end - raw.start + _SLOP


def _provider(said: Facts) -> str | None:
    name = text(said.get("provider"))
    return None if name is None else _renamed(name)


@lru_cache(maxsize=256)
def _renamed(provider: str) -> str:
    name = provider.lower()
    return PROVIDERS.get(name, name)


def _stream(said: Facts) -> bool | None:
    word = said.get("operation")
    if isinstance(word, str) and word[:3] == "ai.":
        return word.endswith(".doStream")
    return truth(said["stream"]) if "stream" in said else None


def _first_token(raw: RawSpan, said: Facts) -> float | None:
    """When the first chunk came; unknown where that would be after the end, for then one of the two is wrong."""
    after = number(said["ttft"]) if "ttft" in said else None
    if after is None and raw.events:
        times = [event.time for event in raw.events if event.name in FIRST_TOKEN_EVENTS and event.time is not None]
        after = min(times) - raw.start if times else None
    return None if after is None or not 0 < after <= _length(raw) else raw.start + after


def _usage(raw: RawSpan, said: Facts) -> Usage:
    """Token counts, the input with what the cache gave and took.

    A dialect that leaves cached tokens out of the input is told by its scope, or by counts that fit no other way.
    """
    if "usage" in said and isinstance(held := decoded(said["usage"]), dict):
        said = {**facts(cast("dict[str, object]", held)), **said}
    read, written = count(said.get("cache_read")), count(said.get("cache_write"))
    cached = (read or 0) + (written or 0)
    given, output = count(said.get("input")), count(said.get("output"))
    if given is None and "uncached" in said and (bare := count(said["uncached"])) is not None:
        if not impossible([(name, said.get(name)) for name in _CACHED]):
            given = bare + cached if raw.name.startswith(EXCLUSIVE_NAMES) or cached > bare else bare
    elif given is not None and cached > given:
        given += cached
    if not given and not output:
        given = output = None  # nothing was counted: streams that end early say 0
    return Usage(
        input_tokens=given or None,
        output_tokens=output,
        cache_read=read,
        cache_write=written,
        reasoning=count(said["reasoning"]) if "reasoning" in said else None,
    )


def left_unknown(said: Facts) -> tuple[str, ...]:
    """What a call gives that cannot be what it is meant for: a sentence each, with the name of the fact."""
    if "usage" in said and isinstance(held := decoded(said["usage"]), dict):
        said = {**facts(cast("dict[str, object]", held)), **said}
    counts = impossible([(name, said[name]) for name in _COUNTS if name in said])
    numbers = [name for name in _NUMBERS if name in said and number(said[name]) is None]
    if not counts and not numbers:
        return ()
    numbers = [name for name in numbers if name != "cost" or _cost(said[name]) is None]  # it may come in parts
    return (*map(NO_COUNT.format, counts), *map(NO_NUMBER.format, numbers))


def _tool(raw: RawSpan, said: Facts) -> ToolUse:
    name = text(said.get("tool")) or text(said.get("entity")) or _tail(raw.name)
    arguments, result = said.get("arguments", said.get("inputs")), said.get("result", said.get("outputs"))
    issuer = text(said["issued_by"]) if "issued_by" in said else None
    return ToolUse(
        name=name,
        call_id=text(said.get("call_id")),
        issued_by=None if issuer is None else SpanId(issuer),
        inferred="inferred" in said and truth(said["inferred"]) is True,
        failed=_failed(raw, said),
        arguments=None if arguments is None else arguments_digest(arguments),
        result=None if result is None else part("tool", plain(result)),
    )


def _agent(raw: RawSpan, said: Facts) -> str | None:
    named = text(said.get("agent"))
    if named is not None:
        return named
    word = said.get("operation")
    entity = text(said.get("entity"))
    if isinstance(word, str) and word.startswith("ai."):  # "ai.streamText my-function"
        return None if entity is None else entity.removeprefix(word).strip() or None
    if raw.name == "claude_code.interaction":
        return "claude_code"
    return entity or _tail(raw.name)


def _tail(name: str) -> str:
    """The part of a span's name that names what did the work."""
    first, _, rest = name.partition(" ")
    return rest.strip("[]") if rest and first in NAMES else name.removesuffix(".tool")


def _retrieval(raw: RawSpan, said: Facts) -> Retrieval:
    results = sum(1 for name in raw.attributes if name.startswith(RESULTS[0]) and name.endswith(RESULTS[1]))
    return Retrieval(source=text(said.get("corpus")) or text(said.get("model")), results=results or None)


def _failed(raw: RawSpan, said: Facts) -> bool | None:
    if raw.failed is not None:
        return raw.failed
    if "failed" in said and (failed := truth(said["failed"])) is not None:
        return failed
    if "success" in said and (succeeded := truth(said["success"])) is not None:
        return not succeeded
    return True if "error" in said else None


def _error(raw: RawSpan, said: Facts) -> ErrorType | None:
    if not _failed(raw, said):
        return None
    named = text(said.get("error"))
    if named is None:
        named = next((found for event in raw.events if (found := text(facts(event.attributes).get("error")))), None)
    return ErrorType(named or str(count(said.get("status")) or "error"))
