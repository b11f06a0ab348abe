"""A task at a glance: what its spans come to, read off their bodies without decoding the rest of them."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct, field

from headway.core.span import ModelCall, Span, Step
from headway.core.spent import Sum
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.contract import contract
from headway.trace.tree import grow

_CALL = ModelCall.__struct_config__.tag
_STEP = Step.__struct_config__.tag
_HUMAN = "human"
_CLIENT_GONE = "client_gone"


class TaskRow(Struct, frozen=True, kw_only=True):
    """One task at a glance. Times are epoch seconds."""

    task: TaskId
    session: SessionId | None
    started_at: float
    """Start of its first span that is not a person's waiting: that lies before the task."""
    ended_at: float | None
    """End of the span that ended last; unknown while none has."""
    spans: int
    calls: int
    """Each once, however many recorded it: an agent, its HTTP client, the gateway."""
    errors: int
    """Spans that ended in an error."""
    failed: bool = False
    """Its last call did: where it did not, the task was answered after what had failed."""
    tokens: Sum
    """Input and output of all calls."""
    models: tuple[str, ...]
    refused: bool = False
    """All that is known of it are calls, none of them reached an engine, and that for no client's leaving."""


class _Work(Struct, frozen=True):
    kind: str = field(name="type")
    model: str | None = None
    attempts: int | None = None
    given_again: msgspec.Raw = msgspec.Raw()
    usage: Usage = field(default_factory=Usage)


class _Span(Struct, frozen=True):
    """As much of a span as a row needs; decoding skips the rest."""

    id: SpanId
    parent: SpanId | None
    start: float
    end: float | None
    work: _Work
    session: SessionId | None = None
    error: str | None = None


class _Owned(Struct, frozen=True):
    tenant: str | None = None


_owned = msgspec.msgpack.Decoder(_Owned)
_decoder = msgspec.msgpack.Decoder(_Span)
_whole = msgspec.msgpack.Decoder(Span)


def summed_up(task: TaskId, bodies: Sequence[bytes]) -> TaskRow:
    """The row of a task with these spans, of which there is at least one.

    Raises:
        msgspec.MsgspecError: one of them is no span.
    """
    spans = [_decoder.decode(body) for body in bodies]
    own = [span for span in spans if span.work.kind != _HUMAN] or spans
    calls = [span.work for span in spans if span.work.kind == _CALL]
    usages = _counted_once(bodies) if _nested(spans) else [call.usage for call in calls]
    return TaskRow(
        task=task,
        session=max((span.session for span in spans if span.session is not None), default=None),
        started_at=min(span.start for span in own),
        ended_at=max((span.end for span in spans if span.end is not None), default=None),
        spans=len(spans),
        calls=len(usages),
        errors=sum(span.error is not None for span in spans),
        tokens=_tokens(usages),
        models=tuple(sorted({call.model for call in calls if call.model is not None})),
        failed=_last_of(own).error is not None,
        refused=all(map(_was_refused, own)),
    )


def of_tenant(bodies: Sequence[bytes], tenant: str) -> list[bytes]:
    """Those of spans that bear this tenant's name.

    Raises:
        msgspec.MsgspecError: one of them is no span.
    """
    return [body for body in bodies if _owned.decode(body).tenant == tenant]


def _last_of(spans: Sequence[_Span]) -> _Span:
    """The call that began last, which is the answer's; the span that did where there is no call."""
    return max([span for span in spans if span.work.kind == _CALL] or spans, key=lambda span: span.start)


def _was_refused(span: _Span) -> bool:
    work = span.work
    return work.kind == _CALL and work.attempts == 0 and not work.given_again and span.error != _CLIENT_GONE


def _nested(spans: Sequence[_Span]) -> bool:
    """Whether one call may have been recorded twice: a call, or a step that may hold one, lies in another."""
    calls = {span.id for span in spans if span.work.kind == _CALL}
    return any(span.parent in calls for span in spans if span.work.kind in {_CALL, _STEP})


def _counted_once(bodies: Sequence[bytes]) -> list[Usage]:
    """What each call used, by the same rule as an anatomy: a call inside a call is one call."""
    tree = grow([_whole.decode(body) for body in bodies])
    works = [tree.spans[i].work for i in contract(tree).calls]
    return [work.usage for work in works if type(work) is ModelCall]


def _tokens(usages: Sequence[Usage]) -> Sum:
    total = known = 0
    for usage in usages:
        total += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        known += usage.input_tokens is not None and usage.output_tokens is not None
    return Sum(total, known, len(usages))
