"""Expected values are read by hand from the files: ids, times and counts of the spans in them."""

import json

import pytest
from claims import calls_of, claimed, extent, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.usage import Usage
from headway.trace.sources.otel.printed import OtelSpans
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

DAGS = "workloads/otel-agent-dags/examples/otel/test_traces"
TRACE = "5b8efff798038103d269b633813fc60c"


def _sdk(own: str, parent: str | None = None, **fields: object) -> dict[str, object]:
    """A span as ``ReadableSpan.to_json`` writes it."""
    return {
        "name": "chat m",
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{own}", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": None if parent is None else f"0x{parent}",
        "start_time": "2026-01-05T10:00:00.250000Z",
        "end_time": "2026-01-05T10:00:04.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 12},
        "events": [],
        "links": [],
        "resource": {"attributes": {"host.name": "h1"}, "schema_url": ""},
        **fields,
    }


def _real(name: str) -> list[Piece]:
    path = sample(f"{DAGS}/{name}.json")
    pieces, skips = read(OtelSpans(), document(path.read_bytes(), path.name))
    assert not skips.all()
    return pieces


def test_it_claims_no_file_of_another_format() -> None:
    assert claimed(OtelSpans()) == set()


def test_it_claims_every_graph_of_the_workload() -> None:
    files = list(sample(DAGS).rglob("*.json"))
    assert len(files) == 9
    assert all(OtelSpans().claims(document(path.read_bytes(), path.name).sample()) for path in files)


@pytest.mark.parametrize("form", ["lines", "array", "printed"])
def test_what_the_sdk_writes_is_read_whichever_way_it_is_written_down(form: str) -> None:
    rows = [_sdk("00000000000000a1"), _sdk("00000000000000b2", "00000000000000a1", status={"status_code": "ERROR"})]
    match form:
        case "lines":
            data = "\n".join(map(json.dumps, rows))
        case "array":
            data = json.dumps(rows, indent=4)
        case _:  # the console exporter: one indented object after another
            data = "\n".join(json.dumps(row, indent=4) for row in rows)
    (piece,), skips = read(OtelSpans(), document(data.encode()))
    assert not skips.all()
    assert piece.task == TRACE
    (first, call), (second, _) = calls_of(piece.spans)
    assert (first.start, first.end, first.host) == (1767607200.25, 1767607204.0, "h1")
    assert call.usage == Usage(input_tokens=12)
    assert (second.parent, second.error) == ("00000000000000a1", "error")


def test_a_chain_of_questions_keeps_its_messages_by_digest() -> None:
    (piece,) = _real("simple/simple_chain")
    (_, first), (_, second), (_, third) = calls_of(piece.spans)
    assert piece.title == "What is the capital of France?"
    assert first.prompt is not None
    assert second.prompt is not None
    assert third.prompt is not None
    assert [len(first.prompt), len(second.prompt), len(third.prompt)] == [1, 3, 5]
    assert second.prompt[:2] == (first.prompt[0], first.answer)
    assert third.prompt[:4] == (*second.prompt, second.answer)
    assert {span.session for span in piece.spans} == {"session"}
    assert extent(piece) == 8.0


def test_ids_that_are_words_are_made_ids() -> None:
    (piece,) = _real("simple/simple_chain")
    assert len(piece.task) == 32
    assert all(len(span.id) == 16 and int(span.id, 16) for span in piece.spans)


def test_several_traces_in_one_file_are_several_tasks() -> None:
    pieces = _real("advanced/prefix_sharing_example")
    assert [len(piece.spans) for piece in pieces] == [1, 1, 4, 1]
    (_, call), *_ = calls_of(pieces[0].spans)
    assert (call.model, call.usage, call.finish_reason) == ("gpt-4o", Usage(input_tokens=50, output_tokens=20), "stop")


@pytest.mark.parametrize(
    ("name", "calls", "seconds"),
    [
        ("advanced/code_review_workflow", 15, 30.0),
        ("advanced/customer_support_escalation", 9, 32.0),
        ("advanced/fan_in_dependencies", 4, 9.0),
        ("advanced/multi_agent_research", 12, 28.0),
        ("advanced/parallel_requests", 5, 10.0),
        ("advanced/software_architecture_review", 15, 40.0),
        ("simple/simple_chain_alt", 3, 8.0),
    ],
)
def test_every_graph_is_read_whole(name: str, calls: int, seconds: float) -> None:
    (piece,) = _real(name)
    assert len(calls_of(piece.spans)) == calls
    assert not tools_of(piece.spans)
    assert extent(piece) == seconds


def test_a_span_that_is_none_costs_only_itself() -> None:
    rows = [_sdk("00000000000000a1"), _sdk("00000000000000b2", start_time=None), _sdk("c3", start_time="then"), {}]
    (piece,), skips = read(OtelSpans(), document("\n".join(map(json.dumps, rows)).encode()))
    assert [span.id for span in piece.spans] == ["00000000000000a1"]
    assert {(skip.reason, skip.count) for skip in skips.all()} == {
        ("a span without a time of start or ids", 2),
        ("a span without a time of start", 1),
    }


def test_half_a_character_in_what_was_printed_costs_itself_alone() -> None:
    data = "\n".join(json.dumps(_sdk("00000000000000a1", name=name), indent=4) for name in ("fine", "\ud800"))
    skips = Skips()
    pieces = list(OtelSpans().read([document(data.encode())], skips))
    assert [span.name for piece in pieces for span in piece.spans] == ["chat m", "chat m"]
    assert not skips


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    original = json.dumps([_sdk("00000000000000a1"), _sdk("00000000000000b2", "00000000000000a1")]).encode()
    list(OtelSpans().read([document(data.draw(damaged([original])))], Skips()))
