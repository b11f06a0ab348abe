import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.task import TaskId
from headway.trace.sources.fields.identities import span_of, task_of

HEX = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("written", [HEX, HEX.upper(), f"trace_{HEX}", "0af76519-16cd-43dd-8448-eb211c80319c"])
def test_an_id_of_128_bits_is_kept(written: str) -> None:
    assert task_of("x", written) == HEX


def test_a_span_of_64_bits_is_kept() -> None:
    assert span_of("x", TaskId(HEX), "00F067AA0BA902B7") == "00f067aa0ba902b7"


@given(st.text())
def test_any_other_becomes_one_that_is_the_same_every_time(written: str) -> None:
    task = task_of("x", written)
    assert task == task_of("x", written)
    assert len(task) == 32
    span = span_of("x", task, written)
    assert span == span_of("x", task, written)
    assert len(span) == 16


def test_spans_of_two_tasks_and_traces_of_two_products_do_not_meet() -> None:
    assert span_of("x", TaskId("a"), "1") != span_of("x", TaskId("b"), "1")
    assert task_of("x", "1") != task_of("y", "1")
