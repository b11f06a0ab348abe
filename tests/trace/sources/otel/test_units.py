"""Times in ms, µs or s where ns belong: told by their magnitude, beside others and alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import document, read

from headway.trace.anatomy import dissect
from headway.trace.sources.otel.inbox import Inbox
from headway.trace.sources.otel.otlp import Otlp
from headway.trace.sources.otel.units import rescaled
from headway.trace.sources.source import Piece
from headway.wire.otel import RawEvent, RawSpan

AT = 1_764_000_000
"""Epoch seconds, in November 2025."""
TRACE = "5b8efff798038103d269b633813fc60c"
PER_SECOND = {"s": 1, "ms": 10**3, "µs": 10**6, "ns": 10**9}


def _span(number: int, since: int, until: int, unit: str) -> dict[str, object]:
    """From so many seconds after AT to so many, written in a unit where OTLP has nanoseconds."""
    of = PER_SECOND[unit]
    model = {"key": "gen_ai.request.model", "value": {"stringValue": "m"}}
    operation = {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": "" if number == 1 else f"{1:016x}",
        "name": "chat m" if number > 1 else "run",
        "startTimeUnixNano": str((AT + since) * of),
        "endTimeUnixNano": str((AT + until) * of),
        "attributes": [operation, model] if number > 1 else [],
    }


def _read(*spans: dict[str, object]) -> Piece:
    told = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    (piece,), _ = read(Otlp(), document(json.dumps(told).encode()))
    return piece


@pytest.mark.parametrize("unit", ["s", "ms", "µs"])
def test_a_span_in_another_unit_than_the_rest_is_brought_to_them(unit: str) -> None:
    piece = _read(_span(1, 0, 20, "ns"), _span(2, 2, 7, unit), _span(3, 8, 11, "ns"))
    anatomy = dissect(piece.spans)
    assert anatomy.e2e == pytest.approx(20.0)
    assert sum(anatomy.phases.values()) == pytest.approx(20.0)
    assert {span.name: span.start for span in piece.spans if span.name == "run"} == {"run": AT}
    assert any(remark.startswith("Times of 1 span were written in another unit") for remark in piece.remarks)


@pytest.mark.parametrize("unit", ["s", "ms", "µs"])
def test_a_trace_that_is_all_in_another_unit_lasts_as_long_as_it_did(unit: str) -> None:
    piece = _read(_span(1, 0, 20, unit), _span(2, 2, 7, unit))
    assert dissect(piece.spans).e2e == pytest.approx(20.0)
    assert min(span.start for span in piece.spans) == pytest.approx(AT)
    assert any(remark.startswith("Times of 2 spans") for remark in piece.remarks)


def test_an_end_alone_may_be_in_another_unit() -> None:
    odd = _span(2, 2, 7, "ns") | {"endTimeUnixNano": str((AT + 7) * 1000)}
    piece = _read(_span(1, 0, 20, "ns"), odd)
    (call,) = [span for span in piece.spans if span.name == "chat m"]
    assert (call.start, call.end) == (AT + 2, AT + 7)


def test_times_in_their_own_unit_are_left_alone() -> None:
    piece = _read(_span(1, 0, 20, "ns"), _span(2, 2, 7, "ns"))
    assert not piece.remarks
    assert dissect(piece.spans).e2e == 20.0


@pytest.mark.parametrize(
    "times",
    [
        [(2_000.0, 2_040.0), (2_001.0, 2_030.0)],  # a clock that began with the machine, half an hour ago
        [(0.00005, 0.0007)],  # one that began with the trace
        [(float(AT), AT + 5.0), (12.0, 14.0)],  # in no unit near the others
    ],
)
def test_clocks_that_do_not_count_from_1970_are_left_alone(times: list[tuple[float, float]]) -> None:
    spans = [RawSpan(trace=TRACE, id=str(i), name="s", start=start, end=end) for i, (start, end) in enumerate(times)]
    assert not rescaled(spans)
    assert [(span.start, span.end) for span in spans] == times


def test_events_move_with_their_span() -> None:
    odd = RawSpan(trace=TRACE, id="2", name="s", start=AT / 1e6, end=AT / 1e6 + 5e-6)
    odd.events = (RawEvent("first", AT / 1e6 + 2e-6), RawEvent("untold", None))
    assert rescaled([RawSpan(trace=TRACE, id="1", name="s", start=AT, end=AT + 9.0), odd]) == [1]
    assert [event.time for event in odd.events] == [pytest.approx(AT + 2), None]


def test_what_arrives_live_is_read_in_the_right_unit_too() -> None:
    raw = RawSpan(trace=TRACE, id=f"{1:016x}", name="s", start=AT / 1e6, end=AT / 1e6 + 5e-6)
    (span,) = Inbox().take([raw]).spans
    assert (span.start, span.end) == (pytest.approx(AT), pytest.approx(AT + 5))


@given(st.lists(st.tuples(st.floats(0, 1e13), st.none() | st.floats(0, 1e13)), max_size=6))
def test_what_is_changed_was_implausible_and_is_not_now(times: list[tuple[float, float | None]]) -> None:
    spans = [RawSpan(trace=TRACE, id=str(i), name="s", start=start, end=end) for i, (start, end) in enumerate(times)]
    changed = rescaled(spans)
    for i, (before, span) in enumerate(zip(times, spans, strict=True)):
        moved = [(old, new) for old, new in zip(before, (span.start, span.end), strict=True) if old != new]
        assert bool(moved) == (i in changed)
        assert all(
            new and 946_684_800 <= new < 4_102_444_800 and not 946_684_800 <= (old or 0) < 4_102_444_800
            for old, new in moved
        )
