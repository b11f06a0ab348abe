"""How urgent a call is: its headers, then whose it is; and a header that cannot be read harms nothing."""

import pytest

from headway.core.access import Caller, Key, KeyId, Tenant, TenantId
from headway.core.task import SpanId
from headway.gateway.journal import CallRecord
from headway.gateway.urgency import read_urgency

NOBODY: frozenset[str] = frozenset()
CALLER = Caller(Key(id=KeyId("k1"), tenant=TenantId("team"), prefix="hw", created=0.0), Tenant(id=TenantId("team")))


def read(batch: frozenset[str] = NOBODY, caller: Caller | None = None, **headers: str) -> CallRecord:
    record = CallRecord(SpanId("1" * 16), 100.0)
    fields = {f"x-headway-{name}".encode(): value.encode() for name, value in headers.items()}
    read_urgency(record, fields, 100.0, caller, batch)
    return record


def test_without_headers_a_call_is_interactive_and_in_no_hurry() -> None:
    record = read()
    assert (record.lane, record.priority, record.deadline, record.notes) == ("interactive", 0, None, ())


def test_a_deadline_is_seconds_from_when_the_request_came() -> None:
    assert read(deadline="2.5").deadline == 102.5
    assert read(deadline="30").deadline == 130.0


@pytest.mark.parametrize("past", ["0", "-5", "-0.5"])
def test_a_deadline_that_is_past_is_heeded(past: str) -> None:
    record = read(deadline=past)
    assert (record.deadline, record.notes) == (100.0, ())


@pytest.mark.parametrize("value", ["", "-", "soon", "1e9", "nan", "inf", "9999999999", "1.5 s"])
def test_a_deadline_that_is_no_number_of_seconds_is_passed_over_and_noted(value: str) -> None:
    record = read(deadline=value)
    assert record.deadline is None
    assert record.notes == (f"x-headway-deadline was not heeded: {value!r} is no number of seconds.",)


@pytest.mark.parametrize(("value", "level"), [("3", 3), ("-3", -3), ("+2", 2), ("99", 10), ("-99", -10)])
def test_priorities_are_whole_numbers_within_ten(value: str, level: int) -> None:
    assert read(priority=value).priority == level


def test_other_priorities_and_lanes_are_noted() -> None:
    record = read(priority="high", lane="fast")
    assert (record.lane, record.priority) == ("interactive", 0)
    assert record.notes == (
        "x-headway-lane was not heeded: 'fast' is neither interactive nor batch.",
        "x-headway-priority was not heeded: 'high' is no whole number from -10 to 10.",
    )


@pytest.mark.parametrize("name", ["team", "k1"])
def test_whom_the_operator_made_batch_stays_so_whatever_the_call_says(name: str) -> None:
    assert read(frozenset({name}), CALLER).lane == "batch"
    assert read(frozenset({name}), CALLER, lane="batch").notes == ()
    raised = read(frozenset({name}), CALLER, lane="interactive")
    assert raised.lane == "batch"
    assert raised.notes == (
        "x-headway-lane was not heeded: 'interactive' is more than the operator allows: this caller's calls are batch.",
    )


def test_everybody_else_says_how_urgent_a_call_is() -> None:
    other = frozenset({"other"})
    assert read(other, CALLER).lane == "interactive"
    assert read(other, CALLER, lane="interactive").notes == ()
    assert read(other, CALLER, lane="batch").lane == "batch"
    assert read(other, lane="batch").lane == "batch"
