"""What a task does, as spans in the same store as the gateway's: task, stage, item, call."""

import asyncio
import re
from collections import deque
from hashlib import blake2b
from pathlib import Path
from typing import Final, Self

from headway.core.clock import Clock
from headway.core.span import ErrorType, ModelCall, Span, Work
from headway.core.task import SpanId, TaskId
from headway.policy.headers import TASK_HEADER, TRACE_HEADER
from headway.runtime.unwanted import REMARK, unwanted
from headway.trace.ids import Ids
from headway.trace.record import Recorder

_TRACE_ID: Final = re.compile(r"[0-9a-f]{32}")
_CALLS: Final = 1_024
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Spans:
    """Makes the spans of tasks and hands them to a recorder, if there is one.

    Args:
        clock: for when spans start and end, and for ids.
        recorder: takes them; ``None``: nobody keeps them.
        store: where the recorder puts them.
    """

    def __init__(self, clock: Clock, recorder: Recorder | None, store: Path | None = None) -> None:
        self.clock = clock
        self.store = store
        self.calls: deque[Span] = deque(maxlen=_CALLS)
        """The last calls of models, kept or not: estimates go by them."""
        self.kept = recorder is not None
        self._recorder = recorder
        self._ids = Ids(clock)

    def new_task(self) -> TaskId:
        """A name for a task."""
        return TaskId(self._ids.task())

    def new(self) -> SpanId:
        """A name for a span."""
        return SpanId(self._ids.span())

    def record(self, span: Span) -> None:
        """Keep a span; the same id once more replaces it."""
        if isinstance(span.work, ModelCall) and span.end is not None:
            self.calls.append(span)
        if self._recorder is not None:
            self._recorder.record(span)


class Timed:
    """A span from entering to leaving it, as a context manager; what leaves it by an exception is its error.

    What was stopped because it was not needed any more has failed of nothing; a remark says so.

    Args:
        spans: where it goes.
        task: whose it is.
        parent: the span that it is a part of.
        name: by OpenTelemetry's rules where those have one.
        work: what it does; may be set anew before it is left.
        early: whether it is kept at its start too, so that a task that is under way, or was killed, can be seen.
    """

    def __init__(
        self, spans: Spans, task: TaskId, parent: SpanId | None, name: str, work: Work, *, early: bool = False
    ) -> None:
        self.id = spans.new()
        self.work = work
        self.remarks: tuple[str, ...] = ()
        self._spans = spans
        self._task = task
        self._parent = parent
        self._name = name
        self._early = early
        self._start = 0.0

    def __enter__(self) -> Self:
        self._start = self._spans.clock.now()
        if self._early:
            self._keep(None, None)
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if error is not None and unwanted(error):
            self.remarks, error = (*self.remarks, REMARK), None
        self._keep(self._spans.clock.now(), None if error is None else error_type(error))

    def _keep(self, end: float | None, error: ErrorType | None) -> None:
        if self._spans.kept or isinstance(self.work, ModelCall):
            self._spans.record(
                Span(
                    task=self._task,
                    id=self.id,
                    parent=self._parent,
                    name=self._name,
                    start=self._start,
                    end=end,
                    work=self.work,
                    error=error,
                    remarks=self.remarks,
                )
            )


def error_type(error: BaseException) -> ErrorType:
    """A short stable word for an exception: ``RateLimitError`` is ``rate_limit``."""
    if isinstance(error, asyncio.CancelledError):
        return ErrorType("cancelled")
    name = type(error).__name__.removesuffix("Error").removesuffix("Exception") or "error"
    return ErrorType(_WORDS.sub("_", name).lower())


def trace_headers(task: TaskId, span: SpanId) -> dict[str, str]:
    """Headers by which a gateway knows the task of a call, and hangs its own spans of it below ``span``."""
    if _TRACE_ID.fullmatch(task) and task.strip("0"):
        return {TRACE_HEADER: f"00-{task}-{span}-01"}
    stand_in = blake2b(task.encode(), digest_size=16).hexdigest()
    return {TASK_HEADER: task, TRACE_HEADER: f"00-{stand_in}-{span}-01"}
