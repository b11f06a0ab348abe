"""A token count that cannot be one is unknown, and it is said that it was given."""

import msgspec
import pytest
from importing import take

from headway.core.span import ModelCall
from headway.trace.sources.fields.scalars import NO_COUNT, NO_NUMBER, impossible


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
    ("data", "names"),
    [
        (otlp(input_tokens={"intValue": "-5"}, output_tokens={"doubleValue": 1e30}), ("input", "output")),
        (jaeger(input_tokens=-5, output_tokens=1e30), ("input", "output")),
        (langfuse(input=-5, output=1e30), ("input", "output")),
        (langsmith(input_tokens=-5, output_tokens=1e30), ("input_tokens", "output_tokens")),
    ],
    ids=["otlp", "jaeger", "langfuse", "langsmith"],
)
def test_it_is_unknown_and_counted_as_left_out(
    data: bytes, names: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("made") / "trace.json"
    path.write_bytes(data)
    (task,), intake = take(path)
    (call,) = [span.work for span in task.spans if isinstance(span.work, ModelCall)]
    assert (call.usage.input_tokens, call.usage.output_tokens) == (None, None)
    assert {skip.reason: skip.count for skip in intake.skipped} == {NO_COUNT.format(name): 1 for name in names}


@pytest.mark.parametrize("cached", ["n/a", -5])
def test_a_part_of_the_input_that_cannot_be_leaves_the_whole_of_it_unknown(
    cached: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("made") / "trace.json"
    path.write_bytes(langfuse(input=100, output=20, input_cached_tokens=cached))
    (task,), intake = take(path)
    (call,) = [span.work for span in task.spans if isinstance(span.work, ModelCall)]
    assert (call.usage.input_tokens, call.usage.output_tokens, call.usage.cache_read) == (None, 20, None)
    assert [skip.reason for skip in intake.skipped] == [NO_COUNT.format("input_cached_tokens")]


def test_other_numbers_that_are_none_are_counted_too(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("made") / "trace.json"
    path.write_bytes(otlp(cost={"stringValue": "free"}, input_tokens={"intValue": "7"}, output_tokens={"intValue": 1}))
    (task,), intake = take(path)
    (call,) = [span.work for span in task.spans if isinstance(span.work, ModelCall)]
    assert (call.cost, call.usage.input_tokens) == (None, 7)
    assert [skip.reason for skip in intake.skipped] == [NO_NUMBER.format("cost")]


def test_what_a_count_can_be() -> None:
    assert impossible([("a", value) for value in (0, 5, "12", 3.0, None, "")]) == []
    odd = {"b": -1, "c": 2.5, "d": 1e30, "e": "many", "f": True, "g": float("inf"), "h": float("nan")}
    assert impossible(odd.items()) == list(odd)
