"""The metrics page: parsed by Prometheus' own parser, its figures worked out by hand."""

import sys
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from headway.core.fleet import FleetView, Replica, ReplicaId, ReplicaLoad
from headway.core.span import ErrorType, Itl, ModelCall, Span, ToolUse
from headway.core.task import Evidence, Identity, SessionId, SpanId, TaskId
from headway.core.usage import Usage
from headway.gateway.metrics import MODELS, Metrics

EMPTY = FleetView(())


def span(call: ModelCall, *, start: float = 100.0, end: float | None = 102.0, error: str | None = None) -> Span:
    return Span(
        task=TaskId("t"),
        id=SpanId("s"),
        parent=None,
        name="chat",
        start=start,
        end=end,
        work=call,
        error=None if error is None else ErrorType(error),
    )


def identity(evidence: Evidence, *, opens: bool = False) -> Identity:
    return Identity(task=TaskId("t"), session=SessionId("s"), evidence=evidence, confidence=1.0, opens_task=opens)


def samples(
    metrics: Metrics, view: FleetView = EMPTY, recorded: int = 0, dropped: int = 0, lost: int = 0
) -> Callable[..., float]:
    """Look a sample up by its name and the labels that matter."""
    page = metrics.render(view, spans_recorded=recorded, spans_dropped=dropped, spans_lost=lost).decode()
    found = [sample for family in text_string_to_metric_families(page) for sample in family.samples]

    def value(name: str, **labels: str) -> float:
        matches = [sample.value for sample in found if sample.name == name and labels.items() <= sample.labels.items()]
        assert len(matches) == 1, (name, labels, matches)
        return matches[0]

    return value


def test_a_streamed_call_is_counted_in_every_family() -> None:
    metrics = Metrics()
    metrics.observe_call(
        span(
            ModelCall(
                model="m",
                replica="r1",
                queued=0.25,
                sent=100.375,
                first_token=100.875,
                last_token=101.875,
                itl=Itl(count=4, mean=0.25, p50=0.25, p95=0.25, max=0.5),
                usage=Usage(input_tokens=64, output_tokens=5, cache_read=48),
                identity=identity("new", opens=True),
            )
        )
    )
    value = samples(metrics, recorded=7, dropped=2, lost=3)
    assert value("headway_requests_total", gen_ai_request_model="m", replica="r1", status="ok") == 1
    # 2 s lie in the bucket up to 2.56 and not in the one up to 1.28
    assert value("gen_ai_server_request_duration_seconds_sum") == 2.0
    assert value("gen_ai_server_request_duration_seconds_bucket", le="1.28") == 0
    assert value("gen_ai_server_request_duration_seconds_bucket", le="2.56") == 1
    # TTFT 0.5 s is on a bound, and a bound belongs to its bucket
    assert value("gen_ai_server_time_to_first_token_seconds_sum") == 0.5
    assert value("gen_ai_server_time_to_first_token_seconds_bucket", le="0.25") == 0
    assert value("gen_ai_server_time_to_first_token_seconds_bucket", le="0.5") == 1
    # one second for the four tokens after the first
    assert value("gen_ai_server_time_per_output_token_seconds_sum") == 0.25
    # sent 0.375 s after the request, 0.25 of them queued
    assert value("headway_overhead_seconds_sum") == 0.125
    assert value("headway_inter_chunk_seconds_sum") == 1.0
    assert value("headway_inter_chunk_seconds_count") == 4
    assert value("headway_longest_gap_seconds_sum") == 0.5
    assert value("gen_ai_client_token_usage_sum", gen_ai_token_type="input") == 64
    assert value("gen_ai_client_token_usage_sum", gen_ai_token_type="output") == 5
    assert value("headway_cached_tokens_total") == 48
    assert value("headway_tasks_total") == 1
    assert value("headway_task_identity_total", evidence="new") == 1
    assert value("headway_spans_recorded_total") == 7
    assert value("headway_spans_dropped_total") == 2
    assert value("headway_spans_lost_total") == 3


def test_what_is_unknown_is_not_counted_as_nought() -> None:
    metrics = Metrics()
    metrics.observe_call(span(ModelCall(model="m", replica="r"), end=None, error="upstream_closed"))
    metrics.observe_call(span(ModelCall(model="m", replica="r", sent=100.5, usage=Usage(output_tokens=1))))
    metrics.observe_call(span(ModelCall(model="m", replica="r", sent=100.5, first_token=101.0, last_token=101.0)))
    value = samples(metrics)
    assert value("gen_ai_server_request_duration_seconds_count") == 2
    assert value("gen_ai_server_time_to_first_token_seconds_count") == 1
    assert value("gen_ai_server_time_per_output_token_seconds_count") == 0
    assert value("gen_ai_client_token_usage_count", gen_ai_token_type="input") == 0
    assert value("gen_ai_client_token_usage_count", gen_ai_token_type="output") == 1
    assert value("headway_longest_gap_seconds_count") == 0


def test_errors_by_type_and_tasks_by_evidence() -> None:
    metrics = Metrics()
    calls: list[tuple[str | None, Evidence]] = [
        ("upstream_closed", "new"),
        ("upstream_closed", "extends"),
        ("timeout", "extends"),
        (None, "tool_result"),
    ]
    for error, evidence in calls:
        metrics.observe_call(span(ModelCall(model="m", replica=error, identity=identity(evidence)), error=error))
    value = samples(metrics)
    assert value("headway_errors_total", error_type="upstream_closed") == 2
    assert value("headway_errors_total", error_type="timeout") == 1
    assert value("headway_requests_total", status="ok") == 1
    assert value("headway_task_identity_total", evidence="extends") == 2
    assert value("headway_tasks_total") == 0


def test_all_of_many_calls_are_counted_and_their_texts_let_go_of() -> None:
    metrics, prompt = Metrics(), "a prompt " * 1_000
    held = sys.getrefcount(prompt)
    for number in range(200):
        call = span(ModelCall(model="m", replica="r", sent=101.0, usage=Usage(output_tokens=number % 2)))
        metrics.observe_call(structs.replace(call, text=(prompt, "")))
    assert sys.getrefcount(prompt) == held
    value = samples(metrics)
    assert value("headway_requests_total", status="ok") == 200
    assert value("gen_ai_client_token_usage_count", gen_ai_token_type="output") == 200
    assert value("gen_ai_client_token_usage_sum", gen_ai_token_type="output") == 100


def test_other_work_is_passed_over() -> None:
    metrics = Metrics()
    metrics.observe_call(
        Span(task=TaskId("t"), id=SpanId("s"), parent=None, name="x", start=0.0, end=1.0, work=ToolUse(name="x"))
    )
    assert b"headway_requests_total{" not in metrics.render(EMPTY, spans_recorded=0, spans_dropped=0, spans_lost=0)


def test_replicas_and_the_process_itself() -> None:
    view = FleetView(
        tuple(
            ReplicaLoad(replica=Replica(id=ReplicaId(name), url="http://x/v1"), healthy=healthy, in_flight=count)
            for name, healthy, count in (("r1", True, 3), ("r2", False, 0))
        )
    )
    value = samples(Metrics(), view)
    assert value("headway_replica_up", replica="r1") == 1
    assert value("headway_replica_up", replica="r2") == 0
    assert value("headway_replica_in_flight", replica="r1") == 3
    assert value("process_cpu_seconds_total") > 0


def test_made_up_names_share_a_label() -> None:
    metrics = Metrics()
    for number in range(MODELS + 50):
        metrics.observe_call(span(ModelCall(model=f"m{number}", replica="r")))
    metrics.observe_call(span(ModelCall(model="refused at the door"), error="unknown_model"))
    metrics.observe_call(span(ModelCall(model="x" * 1_000, replica="r")))
    metrics.observe_call(span(ModelCall(model="m1", replica="r")))
    value = samples(metrics)
    assert value("headway_requests_total", gen_ai_request_model="m1") == 2
    assert value("headway_requests_total", gen_ai_request_model="other", replica="r") == 51
    assert value("headway_requests_total", gen_ai_request_model="other", replica="") == 1
    page = metrics.render(EMPTY, spans_recorded=0, spans_dropped=0, spans_lost=0)
    assert page.count(b"headway_requests_total{") == MODELS + 2


@given(st.text(max_size=40))
def test_any_model_name_survives_the_page(name: str) -> None:
    metrics = Metrics()
    metrics.observe_call(span(ModelCall(model=name, replica=name)))
    page = metrics.render(EMPTY, spans_recorded=0, spans_dropped=0, spans_lost=0).decode()
    families = {family.name: family for family in text_string_to_metric_families(page)}
    assert families["headway_requests"].samples[0].labels == {
        "gen_ai_request_model": name,
        "replica": name,
        "status": "ok",
    }
