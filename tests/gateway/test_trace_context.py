"""Which trace context an engine gets, by W3C Trace Context, level 1 and 2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from serving import chat, serving

from headway.core.task import SpanId, TaskId
from headway.gateway.fake import FakeEngine
from headway.gateway.trace_context import is_sound, passed_on

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TASK, SPAN = TaskId("0af7651916cd43dd8448eb211c80319c"), SpanId("b7ad6b7169203331")
UNBELIEVABLE = [
    "",
    "hello",
    f"00-{TRACE}-{PARENT}",  # no flags
    f"00-{TRACE}-{PARENT}-01-more",  # version 00 has no more
    f"ff-{TRACE}-{PARENT}-01",  # the forbidden version
    f"00-{TRACE.upper()}-{PARENT}-01",
    f"00-{'0' * 32}-{PARENT}-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE}-{PARENT}-1",
    f"00-{TRACE[:-1]}-{PARENT}-01",
]


@pytest.mark.parametrize("flags", ["00", "01", "03"])
def test_the_trace_and_its_flags_stay_and_the_parent_is_the_calls_span(flags: str) -> None:
    theirs = f"00-{TRACE}-{PARENT}-{flags}".encode()
    assert passed_on(theirs, TASK, SPAN, known=True) == f"00-{TRACE}-{SPAN}-{flags}".encode()


def test_a_later_version_is_gone_on_with_as_version_00_with_the_flags_that_are_known() -> None:
    theirs = f"01-{TRACE}-{PARENT}-ff-what-else".encode()
    assert passed_on(theirs, TASK, SPAN, known=True) == f"00-{TRACE}-{SPAN}-03".encode()


@pytest.mark.parametrize("theirs", UNBELIEVABLE)
def test_what_is_not_to_be_believed_is_begun_anew(theirs: str) -> None:
    assert not is_sound(theirs.encode())
    assert passed_on(theirs.encode(), TASK, SPAN, known=True) == f"00-{TASK}-{SPAN}-01".encode()


def test_a_task_that_its_caller_named_has_no_trace_to_begin() -> None:
    assert passed_on(None, TaskId("my task"), SPAN, known=True) is None


def test_a_call_that_is_not_recorded_is_nobodys_parent() -> None:
    theirs = f"00-{TRACE}-{PARENT}-01".encode()
    assert passed_on(theirs, TASK, SPAN, known=False) == theirs
    assert passed_on(None, TASK, SPAN, known=False) is None


@given(st.binary(max_size=80))
def test_whatever_comes_what_goes_on_is_a_context_of_version_00(theirs: bytes) -> None:
    found = passed_on(theirs, TASK, SPAN, known=True)
    assert found is not None
    carrier = {"traceparent": found.decode()}
    context = get_current_span(TraceContextTextMapPropagator().extract(carrier)).get_span_context()
    assert context.is_valid
    assert context.span_id == int(SPAN, 16)


async def test_flags_and_state_of_an_agent_that_is_not_sampled_reach_the_engine() -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        state = "tracestate: a=1,b=2\r\n"
        await served.ask(chat(f"traceparent: 00-{TRACE}-{PARENT}-00\r\n{state}"))
        span, _ = await served.call()
    assert engine.headers[0]["traceparent"] == f"00-{TRACE}-{span.id}-00"
    assert engine.headers[0]["tracestate"] == "a=1,b=2"
    assert (span.task, span.parent) == (TRACE, PARENT)


@pytest.mark.parametrize("theirs", ["", f"traceparent: 00-{'0' * 32}-{PARENT}-01\r\n"])
async def test_a_state_without_a_trace_that_it_belongs_to_is_not_passed_on(theirs: str) -> None:
    async with FakeEngine() as engine, serving(engine) as served:
        await served.ask(chat(f"{theirs}tracestate: a=1\r\n"))
        span, _ = await served.call()
    assert engine.headers[0]["traceparent"] == f"00-{span.task}-{span.id}-01"
    assert "tracestate" not in engine.headers[0]
