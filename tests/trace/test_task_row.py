"""A task at a glance counts what its account counts."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.span import ModelCall, Span, Step, ToolUse, Work
from headway.core.task import SpanId, TaskId
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.task_row import TaskRow, summed_up

TASK = TaskId("5b8efff798038103d269b633813fc60c")


def _span(number: int, parent: int | None, work: Work, start: float = 0.0, end: float | None = 4.0) -> Span:
    above = None if parent is None else SpanId(f"{parent:016x}")
    return Span(task=TASK, id=SpanId(f"{number:016x}"), parent=above, name="s", start=start, end=end, work=work)


def _call(read: int | None, written: int | None) -> ModelCall:
    return ModelCall(model="m", usage=Usage(input_tokens=read, output_tokens=written))


def _row(*spans: Span) -> TaskRow:
    return summed_up(TASK, [msgspec.msgpack.encode(span) for span in spans])


@pytest.mark.parametrize("between", [None, Step()], ids=["directly", "through its HTTP client"])
def test_a_call_that_the_agent_and_the_gateway_recorded_is_one(between: Work | None) -> None:
    outer = _span(2, 1, _call(10, 5), 0.0, 3.0)
    client = [] if between is None else [_span(3, 2, between, 0.1, 2.9)]
    inner = _span(4, 3 if client else 2, _call(10, 5), 0.2, 2.8)
    row = _row(_span(1, None, Step(agent="a")), outer, *client, inner)
    assert (row.calls, row.tokens.total, row.tokens.known, row.tokens.of, row.spans) == (1, 15, 1, 1, 3 + len(client))


def test_the_inner_call_learns_what_only_the_outer_one_knows() -> None:
    row = _row(_span(1, None, Step(agent="a")), _span(2, 1, _call(10, 5)), _span(3, 2, _call(None, None)))
    assert (row.calls, row.tokens.total, row.tokens.known) == (1, 15, 1)


def test_a_call_that_a_tool_made_is_another() -> None:
    tool = _span(3, 2, ToolUse(name="search"), 4.0, 6.0)
    row = _row(_span(1, None, Step(agent="a")), _span(2, 1, _call(10, 5)), tool, _span(4, 3, _call(2, 1), 4.5, 5.0))
    assert (row.calls, row.tokens.total) == (2, 18)


@st.composite
def _tasks(draw: st.DrawFn) -> list[Span]:
    works = st.sampled_from(
        [Step(), Step(agent="a"), ToolUse(name="t"), _call(1, 1), _call(10, None), _call(None, None)]
    )
    spans = [_span(1, None, Step(agent="root"), 0.0, 9.0)]
    for number in range(2, draw(st.integers(2, 9))):
        start = draw(st.integers(0, 8))
        end = draw(st.none() | st.integers(start, 9))
        spans.append(_span(number, draw(st.integers(1, number - 1)), draw(works), start, end))
    return spans


@settings(max_examples=100, deadline=None)
@given(_tasks())
def test_calls_and_tokens_are_those_of_the_anatomy(spans: list[Span]) -> None:
    row, whole = _row(*spans), dissect(spans)
    assert row.calls == whole.calls
    assert row.tokens == whole.spent.tokens
