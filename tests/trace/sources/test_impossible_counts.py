"""A token count that cannot be one is unknown, and it is said that it was given."""

import msgspec
import pytest
from importing import take

from headway.core.span import ModelCall
from headway.trace.sources.fields.scalars import NO_COUNT, impossible


def otlp(**usage: object) -> bytes:
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    attributes += [{"key": f"gen_ai.usage.{name}", "value": value} for name, value in usage.items()]
    span = {
        "traceId": "1" * 32,
        "spanId": "2" * 16,
        "name": "chat m",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
        "attributes": attributes,
    }
    return msgspec.json.encode({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


def jaeger(**usage: object) -> bytes:
    tags = [{"key": "gen_ai.operation.name", "type": "string", "value": "chat"}]
    tags += [{"key": f"gen_ai.usage.{name}", "type": "float64", "value": value} for name, value in usage.items()]
    span = {"traceID": "1" * 32, "spanID": "2" * 16, "operationName": "chat m", "startTime": 1_790_000_000_000_000}
    whole = {**span, "duration": 1_000_000, "references": [], "processID": "p1", "tags": tags}
    trace: dict[str, object] = {
        "traceID": "1" * 32,
        "spans": [whole],
        "processes": {"p1": {"serviceName": "s", "tags": []}},
    }
    return msgspec.json.encode({"data": [trace]})


def langfuse(**usage: object) -> bytes:
    row = {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "model": "m"}
    return msgspec.json.encode([{**row, "endTime": "2026-01-01T00:00:01Z", "usageDetails": usage}])


def langsmith(**usage: object) -> bytes:
    run = {"id": "r", "trace_id": "r", "run_type": "llm", "name": "chat", "start_time": "2026-01-01T00:00:00Z"}
    ended: dict[str, object] = {
        "end_time": "2026-01-01T00:00:01Z",
        "dotted_order": "20260101T000000000000Zr",
        "inputs": {},
    }
    return msgspec.json.encode([{**run, **ended, "outputs": {"usage_metadata": {**usage, "total_cost": 0.001}}}])


@pytest.mark.parametrize(
    "data",
    [
        otlp(input_tokens={"intValue": "-5"}, output_tokens={"doubleValue": 1e30}),
        jaeger(input_tokens=-5, output_tokens=1e30),
        langfuse(input=-5, output=1e30),
        langsmith(input_tokens=-5, output_tokens=1e30),
    ],
    ids=["otlp", "jaeger", "langfuse", "langsmith"],
)
def test_it_is_unknown_and_counted_as_left_out(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("made") / "trace.json"
    path.write_bytes(data)
    (task,), intake = take(path)
    (call,) = [span.work for span in task.spans if isinstance(span.work, ModelCall)]
    assert (call.usage.input_tokens, call.usage.output_tokens) == (None, None)
    assert {skip.reason: skip.count for skip in intake.skipped} == {NO_COUNT: 2}


def test_what_a_count_can_be() -> None:
    assert impossible([0, 5, "12", 3.0, None, ""]) == 0
    assert impossible([-1, 2.5, 1e30, "many", True, float("inf"), float("nan")]) == 7
