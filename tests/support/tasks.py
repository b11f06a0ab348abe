"""Small tasks for the tests of the analysis: seconds from T0, short ids, and forests of any kind."""

from collections.abc import Sequence

from hypothesis import strategies as st

from headway.core.span import (
    ErrorType,
    HumanWait,
    ModelCall,
    Retrieval,
    Setback,
    Span,
    Step,
    ToolCallRef,
    ToolUse,
    Work,
)
from headway.core.task import SpanId, TaskId
from headway.core.usage import EngineTimings, Usage

T0 = 1_790_000_000.0
TASK = TaskId("5" * 32)


def span(name: str, start: float, end: float | None, work: Work, parent: str | None = None) -> Span:
    return Span(
        task=TASK,
        id=SpanId(name),
        parent=None if parent is None else SpanId(parent),
        name=name,
        start=T0 + start,
        end=None if end is None else T0 + end,
        work=work,
    )


def call(  # noqa: PLR0913 - a call has many facts, and a test names the few it needs
    name: str,
    start: float,
    end: float | None,
    parent: str | None = None,
    *,
    marks: tuple[float, float, float] | None = None,
    asks: tuple[str, ...] = (),
    usage: Usage | None = None,
    engine: EngineTimings | None = None,
    attempts: int | None = 1,
) -> Span:
    """A call to a local model; ``marks`` are sent, first token (all visible) and last token."""
    sent, first, last = (None, None, None) if marks is None else (T0 + mark for mark in marks)
    work = ModelCall(
        model="m",
        provider="llama.cpp",
        stream=marks is not None,
        sent=sent,
        first_token=first,
        first_visible=None if asks else first,
        last_token=last,
        usage=usage or Usage(),
        engine=engine,
        attempts=attempts,
        tool_calls=tuple(ToolCallRef(ask, "look") for ask in asks),
    )
    return span(name, start, end, work, parent)


def tool(
    name: str,
    start: float,
    end: float | None,
    parent: str | None = None,
    *,
    by: str | None = None,
    call_id: str | None = None,
    inferred: bool = False,
) -> Span:
    issuer = None if by is None else SpanId(by)
    return span(name, start, end, ToolUse(name="look", call_id=call_id, issued_by=issuer, inferred=inferred), parent)


def step(name: str, start: float, end: float | None, parent: str | None = None, *, agent: str | None = None) -> Span:
    return span(name, start, end, Step(agent=agent), parent)


def human(name: str, start: float, end: float | None, parent: str | None = None) -> Span:
    return span(name, start, end, HumanWait(), parent)


def lost(spans: Sequence[Span], kept: Sequence[Span]) -> set[SpanId]:
    """Ids that are gone without a reason; an inferred tool has one where its agent timed it, too."""
    timed = {one.work.call_id for one in kept if isinstance(one.work, ToolUse) and not one.work.inferred} - {None}
    twice = {
        one.id for one in spans if isinstance(one.work, ToolUse) and one.work.inferred and one.work.call_id in timed
    }
    return {one.id for one in spans} - {one.id for one in kept} - twice


_ids = st.integers(0, 14).map(lambda number: SpanId(f"{number:016x}"))
# Round times make spans that touch, close ones make spans that overlap within the tolerance, the rest anything.
_times = st.one_of(
    st.integers(0, 20).map(lambda quarter: T0 + quarter / 4),
    st.integers(0, 30).map(lambda step: T0 + 2 + step * 0.0004),
    st.floats(0, 20).map(lambda seconds: T0 + seconds),
)
_counts = st.none() | st.integers(0, 1000)
_seconds = st.floats(0, 3)
_calls = st.builds(
    ModelCall,
    model=st.sampled_from(["m", "n"]),
    provider=st.just("llama.cpp"),
    stream=st.none() | st.booleans(),
    queued=st.none() | _seconds,
    sent=st.none() | _times,
    first_token=st.none() | _times,
    first_visible=st.none() | _times,
    last_token=st.none() | _times,
    usage=st.builds(Usage, input_tokens=_counts, output_tokens=_counts, cache_read=_counts),
    engine=st.none()
    | st.builds(
        EngineTimings,
        prefill_tokens=st.integers(0, 1000),
        prefill_seconds=_seconds,
        decode_tokens=st.integers(0, 1000),
        decode_seconds=_seconds,
    ),
    attempts=st.none() | st.integers(0, 3),
    setbacks=st.lists(
        st.builds(Setback, replica=st.just("a"), error=st.just(ErrorType("upstream_closed")), start=_times, end=_times),
        max_size=2,
    ).map(tuple),
    tool_calls=st.lists(st.builds(ToolCallRef, st.sampled_from("ab"), st.just("look")), max_size=2).map(tuple),
)
_tools = st.builds(
    ToolUse,
    name=st.just("look"),
    call_id=st.none() | st.sampled_from("ab"),
    issued_by=st.none() | _ids,
    inferred=st.booleans(),
)
_steps = st.builds(Step, agent=st.none() | st.just("agent"))
_work = st.one_of(_calls, _calls, _tools, st.just(Retrieval()), _steps, st.just(HumanWait()))

forests = st.lists(
    st.builds(
        Span,
        task=st.just(TASK),
        id=_ids,
        parent=st.none() | _ids,
        name=st.just("work"),
        start=_times,
        end=st.none() | _times,
        work=_work,
    ),
    max_size=14,
)
"""Spans in any state: ids twice, parents in circles or missing, ends before starts or none, marks out of order."""
