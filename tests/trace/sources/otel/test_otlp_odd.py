"""Traces that are odd in one way each; what must come out is reckoned from the times in the files."""

import pytest
from claims import calls_of, tools_of
from importing import document, read, sample

from headway.core.span import ModelCall, Span
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.phases import Phase
from headway.trace.sources.otel.otlp import Otlp
from headway.trace.sources.source import Piece


def odd(name: str) -> Piece:
    path = sample(f"traces/handmade/odd_{name}.json")
    (piece,), skips = read(Otlp(), document(path.read_bytes()))
    assert not skips
    assert piece.timing == "spans"
    return piece


def ids(spans: list[tuple[Span, ModelCall]]) -> list[int]:
    return [int(span.id, 16) for span, _ in spans]


def test_clocks_of_two_hosts_are_told_apart_and_never_mixed_up() -> None:
    piece = odd("clock_skew")
    hosts = {int(span.id, 16): span.host for span in piece.spans}
    assert hosts == {1: "h1", 2: "h1", 3: "h2", 4: "h2"}
    (engine, inner), (client, outer) = calls_of(piece.spans)
    assert (engine.start, client.start) == (1789999998.15, 1790000000.1)  # as recorded: the engine seems to be first
    assert inner.first_token == pytest.approx(engine.start + 0.8, abs=1e-6)
    assert outer.first_token is None


def test_an_engines_own_span_is_of_the_model_that_was_asked() -> None:
    piece = odd("clock_skew")
    assert [call.model for _, call in calls_of(piece.spans)] == ["m", "m"]
    assert dissect(piece.spans).calls == 1


def test_cycles_that_all_last_to_the_end_do_not_hide_the_calls_in_them() -> None:
    piece = odd("cumulative_cycles")
    anatomy = dissect(piece.spans)
    assert (anatomy.n, anatomy.calls) == (3, 3)
    assert anatomy.e2e == pytest.approx(9.0, abs=1e-6)
    assert anatomy.phases[Phase.MODEL] == pytest.approx(3 * 2.85, abs=1e-5)  # 2.85 s each, not 9 + 6 + 3


def test_work_that_outlives_the_task_is_apart_from_it() -> None:
    anatomy = dissect(odd("detached_child_outlives_root").spans)
    assert anatomy.e2e == pytest.approx(3.0, abs=1e-6)
    assert anatomy.detached == (SpanId(f"{4:016x}"),)
    assert anatomy.n == 1


def test_requests_under_a_call_are_its_attempts() -> None:
    piece = odd("hidden_retries")
    ((_, call),) = calls_of(piece.spans)
    assert call.attempts == 3
    assert dissect(piece.spans).retries == 2
    errors = {int(span.id, 16): span.error for span in piece.spans}
    assert errors == {1: None, 2: None, 3: "429", 4: "529", 5: None}


def test_a_waiter_that_lasts_nearly_to_the_end_takes_no_time_from_those_at_work() -> None:
    anatomy = dissect(odd("long_poll_waiter").spans)
    assert anatomy.phases[Phase.MODEL] == pytest.approx(2.48, abs=1e-5)
    assert anatomy.phases[Phase.TOOL] == pytest.approx(1.38, abs=1e-5)
    assert anatomy.phases[Phase.HOP] == pytest.approx(4.0 - 2.48 - 1.38, abs=1e-5)


def test_spans_without_a_root_and_without_an_end_are_kept() -> None:
    piece = odd("missing_root_and_unfinished")
    assert len(piece.spans) == 3
    ((tool, _),) = tools_of(piece.spans)
    assert tool.end is None
    anatomy = dissect(piece.spans)
    assert anatomy.e2e == pytest.approx(5.9, abs=1e-6)
    assert anatomy.n == 2


def test_an_end_before_its_start_is_told_and_makes_no_negative_time() -> None:
    piece = odd("negative_duration")
    assert ids(calls_of(piece.spans)) == [2, 3]
    anatomy = dissect(piece.spans)
    assert anatomy.e2e == pytest.approx(3.0, abs=1e-6)
    assert all(segment.end > segment.start for segment in anatomy.path)
    assert any("before" in unknown for unknown in anatomy.unknowns)


def test_a_stream_ends_with_the_record_of_its_end_and_its_tokens_are_unknown() -> None:
    piece = odd("stream_span_ends_at_headers")
    assert {int(span.id, 16) for span in piece.spans} == {1, 2}
    ((span, call),) = calls_of(piece.spans)
    assert (span.start, span.end) == (1790000000.01, 1790000004.83)  # not 0.42, when the headers came
    assert (call.model, call.stream, call.first_token, call.usage) == ("m", True, None, Usage())
    assert any("end of a stream" in remark for remark in piece.remarks)


def test_usage_on_every_level_is_counted_once() -> None:
    anatomy = dissect(odd("usage_on_every_level").spans)
    assert (anatomy.n, anatomy.calls) == (1, 1)
    assert (anatomy.usage.input_tokens, anatomy.usage.output_tokens) == (1000, 80)
