"""What is known of a call, and where it goes when the call has ended: identity, spans, metrics.

Nothing here may harm a request: an exception out of identity or metrics is counted, logged once and left at that.
"""

import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from msgspec import Struct, structs

from headway.core.clock import Clock
from headway.core.config import Recording
from headway.core.money import MicroUsd
from headway.core.span import (
    ErrorType,
    GivenAgain,
    HumanWait,
    Itl,
    ModelCall,
    Receipt,
    Retrieval,
    Setback,
    Span,
    ToolCallRef,
    ToolUse,
    Work,
)
from headway.core.task import Identity, SpanId, TaskId
from headway.core.usage import Usage
from headway.gateway.exposition import family
from headway.gateway.metrics import Metrics
from headway.policy.elsewhere import Told
from headway.policy.headers import IDENTITY_HEADERS, RETRY_HEADER, sent_before
from headway.policy.identify import CallAnswered, CallFailed, CallOpening, Identifier
from headway.policy.messages import IssuedCall
from headway.policy.order.waiting import Lane
from headway.trace.ids import Ids
from headway.trace.record import Recorder
from headway.wire.crowded import crowded
from headway.wire.dialect import Asked, Dialect
from headway.wire.dialects import CHAT, COUNT_TOKENS, EMBEDDINGS
from headway.wire.openai import NULL, Answer

_log = logging.getLogger(__name__)
_IDENTITY_NAMES: Final = frozenset(name.encode() for name in IDENTITY_HEADERS)
_RETRIES: Final = RETRY_HEADER.encode()
_TELLING_NAMES: Final = _IDENTITY_NAMES - {_RETRIES}
_NO_HEADERS: Final[dict[str, str]] = {}
_OPERATIONS: Final = {EMBEDDINGS.name: "embeddings", COUNT_TOKENS.name: "count_tokens"}
"""What a call is there for, by its dialect; all others talk."""
TALK: Final = "chat"
"""The operation of calls that have a conversation."""
_UNCONNECTED: Final = frozenset({"upstream_connect", "client_gone"})
_NO_MESSAGES: Final = b"null"
_UNPAID: Final = MicroUsd(0)
_NOTHING: Final = Usage(input_tokens=0, output_tokens=0)


class CallRecord(Struct, eq=False, gc=False):
    """The facts of one call, filled in as they come to be known. Times are epoch seconds; ``None`` is unknown."""

    span: SpanId
    received: float
    operation: str = TALK
    tenant: str = ""
    """Whose call it is; empty where there are no keys."""
    task: TaskId = TaskId("")
    identity: Identity | None = None
    model: str = "unknown"
    stream: bool | None = None
    replica: str | None = None
    provider: str | None = None
    receipt: Receipt | None = None
    given_again: GivenAgain | None = None
    renews: SpanId | None = None
    """The call whose stale answer it makes anew, and which has not waited for that."""
    begun: float | None = None
    """When the answer began to be made that it got, where others before were not good enough; each has its own span."""
    before: tuple["CallRecord", ...] = ()
    """Those, and the calls of a judge: each used what it used."""
    queued: float = 0.0
    """Seconds that it was held: for its turn, or for another call's answer."""
    sent: float | None = None
    attempts: int = 0
    sent_before: int | None = None
    """How often the caller had sent it before, by its own count."""
    setbacks: tuple[Setback, ...] = ()
    unheard: int = 0
    """Other replicas that had it at the same time and were cut off: they may have read the prompt, and said nothing."""
    wanting: bool = False
    """Its answer was found wanting, and given all the same because no better tier had one: not to be kept."""
    first_token: float | None = None
    first_visible: float | None = None
    last_token: float | None = None
    itl: Itl | None = None
    answer: Answer | None = None
    error: ErrorType | None = None
    prompt: bytes = b""
    """The raw messages, only where text is kept."""
    lane: Lane = "interactive"
    priority: int = 0
    """Higher goes first among its tenant's calls of its lane."""
    deadline: float | None = None
    """When its task has to be done."""
    notes: tuple[str, ...] = ()
    """What its receipt is to say beside why its replica was chosen."""


class Journal:
    """Opens a record for each call and closes it.

    Args:
        identifier: tells which task a call belongs to; without it each call is a task of its own.
        recorder: takes the spans; without it none are made for it, but metrics still are if there is an identifier.
        metrics: counts every call that is observed.
        recording: whether text is kept.
        clock: for when calls end, and for the ids of tasks.
    """

    def __init__(
        self,
        identifier: Identifier | None,
        recorder: Recorder | None,
        metrics: Metrics,
        recording: Recording,
        clock: Clock,
    ) -> None:
        self._identifier = identifier
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._keep_text = recording.keep_text
        self._ids = Ids(clock)
        self.active = identifier is not None or recorder is not None
        """Off: answers are relayed without being looked into."""
        self.told: Callable[[Told], None] | None = None
        """Where other workers are to hear of calls that have ended: tells them."""
        self.faults = 0
        """Exceptions out of identity and metrics since the start."""

    def families(self) -> Iterator[str]:
        """For the page of metrics."""
        yield from family(
            "headway_observation_faults_total",
            "counter",
            "Calls that were served but could not be wholly observed.",
            [({}, self.faults)],
        )

    @property
    def spans_recorded(self) -> int:
        """Spans that were written to the store."""
        return 0 if self._recorder is None else self._recorder.recorded

    @property
    def spans_dropped(self) -> int:
        """Spans that never were, and never will be."""
        return 0 if self._recorder is None else self._recorder.dropped

    @property
    def spans_lost(self) -> int:
        """Spans that were, and are gone with the store's file."""
        return 0 if self._recorder is None else self._recorder.lost

    def open(self, received: float, dialect: Dialect) -> CallRecord:
        """A record for a request that came at ``received``."""
        record = CallRecord(self.new_span(), received)
        if dialect is not CHAT:
            record.operation = _OPERATIONS.get(dialect.name, TALK)
        return record

    def identify(self, record: CallRecord, asked: Asked, fields: dict[bytes, bytes], now: float) -> None:
        """Note what is asked and find out for which task.

        A prompt whose tokens are counted is about to be asked: the call that asks it is the task's, counting is not.
        """
        record.model = asked.model
        record.stream = asked.stream is True
        if not self.active:
            return
        said = bytes(asked.messages) if record.operation == TALK else _NO_MESSAGES
        if (told := fields.get(_RETRIES)) is not None:
            record.sent_before = 0 if told == b"0" else sent_before(told.decode("latin-1"))
        if self._keep_text:
            record.prompt = said
        if self._identifier is not None and record.operation != "count_tokens":
            opening = _opening(record, asked, said, fields)
            try:
                record.identity = self._identifier.decide(opening, now)
            except Exception:  # noqa: BLE001 - the seam: whatever goes wrong in observing, the request is served
                self._fault()
        if record.identity is not None:
            record.task = record.identity.task
        elif record.operation != "count_tokens":
            record.task = self._new_task()

    def wanted(self, record: CallRecord, asked: Asked, fields: dict[bytes, bytes]) -> tuple[str, ...]:
        """The keys under which other workers may know what a call continues; see `Identifier.wanted`."""
        if self._identifier is None or record.operation != TALK:
            return ()
        try:
            return self._identifier.wanted(_opening(record, asked, bytes(asked.messages), fields))
        except Exception:  # noqa: BLE001 - as above
            self._fault()
            return ()

    def learn(self, found: Sequence[Told], tenant: str) -> None:
        """Other workers have told of these calls."""
        if self._identifier is not None:
            self._identifier.learn(found, tenant)

    def close(self, record: CallRecord) -> None:
        """The call has ended just now, well or not: hand on what is known of it."""
        if not self.active:
            return
        try:
            self._account(record, self._clock.now())
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def aside(self, record: CallRecord, ended: float) -> None:
        """Hand on a call that was made for another's sake: of that one's task, and nothing is learnt from it."""
        if not self.active:
            return
        try:
            span = self._call_span(record, ended)
            work = cast("ModelCall", span.work)
            span = structs.replace(span, work=structs.replace(work, identity=None))
            if self._recorder is not None:
                self._recorder.record(span)
            self._metrics.observe_call(span)
        except Exception:  # noqa: BLE001 - as above
            self._fault()

    def _account(self, record: CallRecord, now: float) -> None:
        if not record.task:
            record.task = self._new_task()
        identity = record.identity
        span = self._call_span(record, now)
        if record.renews is not None:
            span = structs.replace(span, parent=record.renews, awaited=False)
        if self._recorder is not None and record.operation != "count_tokens":
            self._recorder.record(span if record.operation == TALK else _looked_up(span, record.model))
            if identity is not None and (identity.tools or identity.human_wait is not None):
                for gap in _gaps(record, identity, self.new_span):
                    self._recorder.record(gap)
        if self._identifier is not None and identity is not None:
            self._identifier.observe(_outcome(record, now), now)
            if self.told is not None and (told := self._identifier.told(record.span)) is not None:
                self.told(told)
        self._metrics.observe_call(span)

    def _fault(self) -> None:
        """Told without the exception's message, which may hold what a prompt said."""
        self.faults += 1
        if self.faults == 1:
            kind, _, trace = sys.exc_info()
            _log.error(
                "a call could not be observed (%s); it was served, and further such faults are only counted:\n%s",
                "unknown" if kind is None else kind.__name__,
                "".join(traceback.format_tb(trace)),
            )

    def new_span(self) -> SpanId:
        """An id for one more span."""
        return SpanId(self._ids.span())

    def _new_task(self) -> TaskId:
        return TaskId(self._ids.task())

    def _call_span(self, record: CallRecord, now: float) -> Span:
        answer = record.answer
        identity = record.identity
        work = ModelCall(
            model=record.model,
            provider=record.provider,
            replica=record.replica,
            stream=record.stream,
            queued=record.queued,
            sent=record.sent,
            first_token=record.first_token,
            first_visible=record.first_visible,
            last_token=record.last_token,
            itl=record.itl,
            usage=_usage(record),
            engine=None if answer is None else answer.engine,
            finish_reason=None if answer is None else answer.finish_reason,
            attempts=record.attempts or _tried(record),
            setbacks=record.setbacks,
            sent_before=record.sent_before,
            tool_calls=() if answer is None else tuple([ToolCallRef(call.id, call.name) for call in answer.tool_calls]),
            identity=identity,
            route=record.receipt,
            given_again=record.given_again,
            cost=None if record.given_again is None and record.sent is not None else _UNPAID,
        )
        text = (record.prompt.decode(), "" if answer is None else answer.content) if self._keep_text else None
        return Span(
            task=record.task,
            id=record.span,
            parent=None if identity is None else identity.parent,
            name=f"{record.operation} {record.model}",
            start=record.received if record.begun is None else record.begun,
            end=now,
            work=work,
            session=None if identity is None else identity.session,
            tenant=record.tenant or None,
            error=record.error,
            text=text,
        )


def _usage(record: CallRecord) -> Usage:
    """What the engine has counted; a call that no engine was sent has used nothing, which is known."""
    if record.answer is not None:
        return record.answer.usage
    return _NOTHING if record.sent is None else Usage()


def _opening(record: CallRecord, asked: Asked, said: bytes, fields: dict[bytes, bytes]) -> CallOpening:
    tools = asked.tools
    return CallOpening(
        span=record.span,
        tenant=record.tenant,
        model=asked.model,
        messages=_NO_MESSAGES if crowded(said) else said,
        tools=None if tools == NULL else bytes(tools),
        headers=_identity_headers(fields),
        body_session=asked.session,
    )


def _looked_up(span: Span, model: str) -> Span:
    """An embedding as tasks know it: a step of a look-up and no call of the agent's loop."""
    return structs.replace(span, work=Retrieval(source=model))


def _tried(record: CallRecord) -> int:
    """Attempts at a call that was never sent: having no connection is one, and no refusal, be it that a client left."""
    connecting = record.replica is not None and record.error in _UNCONNECTED
    return 1 if record.setbacks or connecting else 0


def _identity_headers(fields: dict[bytes, bytes]) -> dict[str, str]:
    if _TELLING_NAMES.isdisjoint(fields) and fields.get(_RETRIES, b"0") == b"0":
        return _NO_HEADERS
    return {name.decode(): fields[name].decode("latin-1") for name in fields.keys() & _IDENTITY_NAMES}


def _outcome(record: CallRecord, now: float) -> CallAnswered | CallFailed:
    answer = record.answer
    if record.error is not None or answer is None:
        return CallFailed(span=record.span, ended_at=now)
    return CallAnswered(
        span=record.span,
        content=answer.content,
        tool_calls=tuple([IssuedCall(call.id, call.name, call.arguments) for call in answer.tool_calls]),
        ended_at=now,
        finish_reason=answer.finish_reason,
        input_tokens=answer.usage.input_tokens,
    )


def _gaps(record: CallRecord, identity: Identity, new_span: Callable[[], SpanId]) -> list[Span]:
    """What happened between the last answer and this request: tools at work, or a person."""

    def span(span_id: SpanId, name: str, start: float, work: Work) -> Span:
        return Span(
            task=identity.task,
            id=span_id,
            parent=identity.parent,
            name=name,
            start=min(start, record.received),
            end=record.received,
            work=work,
            session=identity.session,
            tenant=record.tenant or None,
        )

    spans = [
        span(
            tool.span_id,
            f"execute_tool {tool.name}",
            tool.issued_at,
            ToolUse(name=tool.name, call_id=tool.call_id, issued_by=tool.issued_by, inferred=True, failed=tool.failed),
        )
        for tool in identity.tools
    ]
    if identity.human_wait is not None:
        start = record.received - identity.human_wait
        spans.append(span(new_span(), "human_wait", start, HumanWait()))
    return spans
