"""Expected values are read by hand from the files: times in µs, counts and ids in their tags."""

import json

import pytest
from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.core.span import Span
from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.phases import Phase
from headway.trace.sources.otel.jaeger import Jaeger
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

TRACE = "5b8efff798038103d269b633813fc60c"


def _span(own: str, parent: str | None = None, **fields: object) -> dict[str, object]:
    references = [] if parent is None else [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": parent}]
    return {
        "traceID": TRACE,
        "spanID": own,
        "operationName": "work",
        "references": references,
        "startTime": 1_790_000_000_000_000,
        "duration": 2_500_000,
        "tags": [],
        "logs": [],
        "processID": "p1",
        **fields,
    }


def _tags(**tags: object) -> list[dict[str, object]]:
    return [{"key": key.replace("__", "."), "type": "string", "value": value} for key, value in tags.items()]


def _document(*spans: dict[str, object], wrapped: bool = True) -> bytes:
    processes = {"p1": {"serviceName": "agent", "tags": _tags(hostname="node-7")}}
    trace = {"traceID": TRACE, "spans": spans, "processes": processes}
    return json.dumps({"data": [trace]} if wrapped else trace).encode()


def _piece(*spans: dict[str, object], wrapped: bool = True) -> Piece:
    (piece,), skips = read(Jaeger(), document(_document(*spans, wrapped=wrapped)))
    assert not skips.all()
    return piece


def _real(name: str) -> Piece:
    path = sample(f"traces/{name}")
    (piece,), skips = read(Jaeger(), document(path.read_bytes(), path.name))
    assert not skips.all()
    return piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Jaeger()) == files_of("jaeger_crisp", "jaeger_genai") | {
        "jaeger/domain_03.json",
        "jaeger/otlp2jaeger-out.json",
    }


def test_a_span_is_read_with_its_host_status_and_parent() -> None:
    child = _span("00000000000000b2", "00000000000000a1", tags=_tags(otel__status_code="ERROR", error__type="timeout"))
    piece = _piece(_span("00000000000000a1"), child)
    root, inner = piece.spans
    assert piece.task == TRACE
    assert (root.start, root.end, root.host, root.error) == (1790000000.0, 1790000002.5, "node-7", None)
    assert (inner.parent, inner.error) == ("00000000000000a1", "timeout")


def test_a_trace_by_itself_is_read_as_one_among_several() -> None:
    assert _piece(_span("00000000000000a1"), wrapped=False) == _piece(_span("00000000000000a1"))


def test_what_only_follows_from_a_span_was_not_waited_for_by_it() -> None:
    follows = [{"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "00000000000000a1"}]
    piece = _piece(_span("00000000000000a1"), _span("00000000000000b2", references=follows))
    assert [(span.parent, span.awaited) for span in piece.spans] == [(None, True), ("00000000000000a1", False)]


def test_a_reference_into_another_trace_is_no_parent() -> None:
    other = [{"refType": "CHILD_OF", "traceID": "ff", "spanID": "00000000000000a1"}]
    (span,) = _piece(_span("00000000000000b2", references=other)).spans
    assert span.parent is None


def test_a_span_that_is_none_costs_only_itself() -> None:
    data = _document(_span("00000000000000a1"), _span("00000000000000b2", duration=[]), _span("c3", startTime=None))
    (piece,), skips = read(Jaeger(), document(data))
    assert [(span.id, span.end is None) for span in piece.spans] == [
        ("00000000000000a1", False),
        ("00000000000000b2", True),
    ]
    assert {skip.reason for skip in skips.all()} == {
        "a field of the wrong type, left out: duration",
        "a span without a time of start",
    }


def test_the_data_models_own_json_counts_in_written_units_and_base64() -> None:
    piece = _real("jaeger/domain_03.json")
    assert piece.task == "000000000000000052969a8955571a3f"  # AAAAAAAAAABSlpqJVVcaPw==
    first, second = piece.spans
    assert (first.id, first.host) == ("0000000000647d98", "api246-sjc1")
    assert first.start == pytest.approx(1485467191.639875, abs=1e-6)  # 16:46:31.639875 at -05:00
    assert length(first) == 0.0229
    assert second.parent == second.id  # a circle, for the tree to open


def test_a_span_recorded_twice_is_there_twice() -> None:
    piece = _real("jaeger/otlp2jaeger-out.json")
    assert [(span.id, span.parent) for span in piece.spans] == [("e127af99e3b3e074", "909541b92cf05311")] * 2
    assert {round(span.end - span.start, 6) for span in piece.spans if span.end} == {0.000123}


def test_an_agents_trace_among_its_frameworks_own_spans() -> None:
    piece = _real("jaeger_genai/helm.json")
    assert len(piece.spans) == 96
    assert piece.task == "3e289017fe03ffd7c4145316d2eb3d0d"
    assert piece.title == "list all Helm releases"
    assert {span.session for span in piece.spans} == {"ctx-7ed9780f-3688-4fc0-b10b-2e4df2f83cf0"}
    calls = {span.id: call for span, call in calls_of(piece.spans)}
    assert len(calls) == 4  # each call of the SDK inside one of the framework
    first, second = calls[SpanId("6c728e555894414d")], calls[SpanId("e813c1b43582a58e")]
    assert first.usage == Usage(input_tokens=1820, output_tokens=13, cache_read=0, reasoning=0)
    assert second.usage == Usage(input_tokens=1956, output_tokens=117, cache_read=1792, reasoning=0)
    assert (first.attempts, second.attempts) == (1, 1)  # one POST under each
    assert (first.finish_reason, second.finish_reason) == ("tool_calls", "stop")
    ((tool, use),) = tools_of(piece.spans)
    assert (use.name, use.issued_by, length(tool)) == ("helm_list_releases", "6c728e555894414d", 0.0571)
    assert first.prompt is not None
    assert second.prompt is not None
    assert second.prompt[: len(first.prompt)] == first.prompt
    assert second.prompt[len(first.prompt)] == first.answer


@pytest.mark.parametrize(
    ("name", "n", "e2e", "read", "written"),
    [
        ("helm", 2, 4.1805, 1820 + 1956, 13 + 117),
        ("helm_2", 1, 2.0044, 1822, 43),
        ("k8s", 1, 2.1456, 2203, 139),
    ],
)
def test_wrapper_and_provider_spans_are_one_call_with_its_tokens_counted_once(
    name: str, n: int, e2e: float, read: int, written: int
) -> None:
    piece = _real(f"jaeger_genai/{name}.json")
    anatomy = dissect(piece.spans)
    assert (anatomy.n, anatomy.calls) == (n, n)
    assert anatomy.e2e == pytest.approx(e2e, abs=1e-4)
    assert (anatomy.usage.input_tokens, anatomy.usage.output_tokens) == (read, written)
    model = anatomy.phases[Phase.MODEL]
    assert 0.97 < model / anatomy.e2e < 0.99  # the rest is the framework's own; its waiters take nothing


@pytest.mark.parametrize(
    ("name", "spans", "seconds"),
    [("1", 1, 0.0001), ("4", 3, 0.0001), ("9", 4, 0.0002), ("10", 4, 0.001), ("24", 9, 0.0007)],
)
def test_traces_of_ordinary_services_are_read_too(name: str, spans: int, seconds: float) -> None:
    piece = _real(f"jaeger_crisp/{name}.json")
    assert len(piece.spans) == spans
    assert extent(piece) == seconds


def test_every_error_pattern_is_read() -> None:
    errors = [span.id for span in _real("jaeger_crisp/err_pattern3_err1.json").spans if span.error]
    assert len(errors) == 2  # B and C


def _originals() -> list[bytes]:
    chat = _tags(gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__usage__input_tokens="12")
    return [_document(_span("00000000000000a1"), _span("00000000000000b2", "00000000000000a1", tags=chat))]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    damage = data.draw(damaged(_originals()))
    pieces = list(Jaeger().read([document(damage)], Skips()))
    assert all(isinstance(span, Span) for piece in pieces for span in piece.spans)


def test_ids_that_are_not_w3cs_are_made_so() -> None:
    piece = _real("jaeger_crisp/4.json")
    assert isinstance(piece.task, str)
    assert len(piece.task) == 32
    a, b, c = piece.spans
    assert [len(span.id) for span in piece.spans] == [16, 16, 16]
    assert (a.parent, b.parent, c.parent) == (None, a.id, b.id)
