"""Canonical spans as OTLP, under the current names of the GenAI conventions.

What these have no names for travels in attributes of Headway's own where a critical path needs it (a call's marks and
its engine's timings, which call asked for a tool, whether that was timed); texts, digests and how a call was identified
and routed stay behind.
"""

import re
from collections.abc import Iterable
from typing import Final, assert_never

from headway.core.span import HumanWait, ModelCall, Retrieval, Span, Step, ToolUse
from headway.core.task import TaskId
from headway.trace.sources.fields.identities import span_of, task_of
from headway.trace.sources.otel.attributes import HOSTS, TABLE, Fact
from headway.trace.sources.otel.marks import written
from headway.wire.otel import RawSpan
from headway.wire.otlp_protobuf_writer import to_protobuf
from headway.wire.otlp_writer import to_json

_SCOPE: Final = "headway"
_HOST: Final = HOSTS[1]
_W3C: Final = re.compile("[0-9a-f]{32}")


def to_otlp(spans: Iterable[Span]) -> bytes:
    """One OTLP message as JSON, on one line; several after one another are what the collector's file exporter writes.

    Ids that W3C trace context does not allow become others, the same wherever they stand.
    A span whose start is not after the epoch cannot be told from one without a start and is left out.
    """
    return to_json([_raw(span) for span in spans if span.start > 0])


def to_otlp_protobuf(spans: Iterable[Span]) -> bytes:
    """The same as protobuf: one message for an endpoint that takes OTLP over HTTP.

    Raises:
        ValueError: a text holds half a character, or a time is beyond what OTLP can tell.
    """
    return to_protobuf([_raw(span) for span in spans if span.start > 0])


def _raw(span: Span) -> RawSpan:
    task = _trace(span.task)
    said: dict[Fact, object] = {"session": span.session, "error": span.error}
    if not span.awaited:
        said["awaited"] = False
    failed = True if span.error is not None else None
    match span.work:
        case ModelCall() as work:
            said |= _call(work, span.start)
            said["operation"] = _word(span.name)
        case ToolUse() as work:
            said |= {"operation": "execute_tool", "tool": work.name, "call_id": work.call_id}
            said["issued_by"] = None if work.issued_by is None else span_of(_SCOPE, task, work.issued_by)
            said["inferred"] = work.inferred or None
            failed = True if failed else work.failed
        case Step(agent=str() as agent):
            said |= {"operation": "invoke_agent", "agent": agent}
        case Retrieval() as work:
            said |= {"operation": "retrieval", "corpus": work.source}
        case HumanWait() | Step():
            pass
        case _:
            assert_never(span.work)
    return RawSpan(
        trace=task,
        id=span_of(_SCOPE, task, span.id),
        parent=None if span.parent is None else span_of(_SCOPE, task, span.parent),
        name=span.name,
        start=span.start,
        end=span.end,
        attributes={name: value for fact, value in said.items() if value is not None for name in _names(fact)},
        kind="client" if isinstance(span.work, ModelCall) else "internal",
        scope=_SCOPE,
        failed=failed,
        resource={"service.name": _SCOPE} | ({} if span.host is None else {_HOST: span.host}),
    )


def _trace(task: TaskId) -> TaskId:
    """A tenant's tag stands after an ``@``: the trace that its caller named goes on under its own id."""
    name, tagged, _ = task.partition("@")
    return task_of(_SCOPE, name if tagged and _W3C.fullmatch(name) else task)


def _call(work: ModelCall, start: float) -> dict[Fact, object]:
    usage = work.usage
    queued = work.queued if work.queued is not None and work.sent == start + work.queued else None
    return {
        "provider": work.provider,
        "model": work.model,
        "stream": work.stream,
        "ttft": None if work.first_token is None else work.first_token - start,
        "queue": queued,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "finish": None if work.finish_reason is None else [work.finish_reason],
        "attempt": work.attempts,
        "cost": None if work.cost is None else work.cost / 1_000_000,
        "marks": written(work),
    }


def _word(name: str) -> str:
    first = name.partition(" ")[0]
    return first if first in {"generate_content", "text_completion"} else "chat"


def _names(fact: Fact) -> tuple[str, ...]:
    """The current name of a fact; the model has two, of which a call must have the second."""
    return TABLE[fact][:2] if fact == "model" else TABLE[fact][:1]
