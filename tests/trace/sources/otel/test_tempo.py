"""Expected values are read by hand from the file."""

import json

import pytest
from claims import calls_of, claimed, files_of, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample
from otlp_documents import message, span

from headway.core.task import SpanId
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.sources.otel.tempo import Tempo
from headway.trace.sources.skips import Skips


def _batches(data: bytes) -> bytes:
    return json.dumps({"batches": json.loads(data)["resourceSpans"]}).encode()


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Tempo()) == files_of("tempo_genai")


def test_an_agents_trace_as_grafana_exports_it() -> None:
    path = sample("traces/tempo_genai/tempo_export_with_batches.json")
    (piece,), skips = read(Tempo(), document(path.read_bytes()))
    assert not skips.all()
    assert len(piece.spans) == 86
    assert piece.title == "list all helm releases"
    calls = {one.id: call for one, call in calls_of(piece.spans)}
    assert len(calls) == 6  # two calls, each in two wrappers
    assert calls[SpanId("0e5deee1c91f77f8")].usage == Usage(input_tokens=2256, output_tokens=13, cache_read=0)
    ((_, use),) = tools_of(piece.spans)
    assert (use.name, use.issued_by) == ("helm_list_releases", "0e5deee1c91f77f8")
    anatomy = dissect(piece.spans)
    assert (anatomy.n, anatomy.usage.input_tokens, anatomy.usage.output_tokens) == (2, 2256 + 2392, 13 + 116)
    assert anatomy.e2e == pytest.approx(4.6613, abs=1e-3)  # the HTTP request around it all


def test_the_second_versions_wrapper_is_read() -> None:
    data = message(span(1, "invoke_agent a", 0, 1))
    wrapped = json.dumps({"trace": json.loads(data), "metrics": {}}).encode()
    for made in (wrapped, _batches(data)):
        (piece,), skips = read(Tempo(), document(made))
        assert [one.name for one in piece.spans] == ["invoke_agent a"]
        assert not skips.all()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    original = _batches(message(span(1, "invoke_agent a", 0, 1), span(2, "chat m", 0.1, 0.9, parent=1)))
    list(Tempo().read([document(data.draw(damaged([original])))], Skips()))
