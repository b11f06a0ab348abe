"""Spans for tests of the store."""

from headway.core.span import ErrorType, ModelCall, Span, Step
from headway.core.task import SessionId, SpanId, TaskId
from headway.core.usage import Usage


def step(task: str, number: int = 0, *, start: float = 0.0, end: float | None = None, error: str | None = None) -> Span:
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name="step",
        start=start,
        end=end,
        work=Step(),
        error=None if error is None else ErrorType(error),
    )


def call(task: str, number: int, model: str, usage: Usage, *, start: float = 0.0) -> Span:
    return Span(
        task=TaskId(task),
        id=SpanId(f"{number:016x}"),
        parent=None,
        name=f"chat {model}",
        start=start,
        end=start + 1.0,
        work=ModelCall(model=model, usage=usage),
        session=SessionId("chat-1"),
    )
