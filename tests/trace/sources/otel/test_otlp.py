"""OTLP documents from end to end: what their traces mean as a whole."""

import json

import pytest
from claims import calls_of, claimed, files_of, tools_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample
from otlp_documents import TRACE, message, span
from otlp_messages import protobuf

from headway.core.span import HumanWait, ToolCallRef
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.phases import Phase
from headway.trace.sources.otel.otlp import Otlp
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.wire.otlp import from_json

AT = 1_790_000_000.0
AGENT: dict[str, object] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
CHAT: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}


def _piece(*documents: bytes) -> Piece:
    (piece,), skips = read(Otlp(), *map(document, documents))
    assert not skips.all()
    return piece


def _task(*spans: dict[str, object], scope: str = "test") -> Piece:
    return _piece(message(*spans, scope=scope))


def _issuers(piece: Piece) -> dict[int, int | None]:
    return {
        int(one.id, 16): None if use.issued_by is None else int(use.issued_by, 16) for one, use in tools_of(piece.spans)
    }


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Otlp()) == files_of("handmade", "otlp") | {
        "jaeger/example_trace.json",
        "jaeger/link_attributes_trace.json",
        "jaeger/otlp2jaeger-in.json",
    }


def test_the_specifications_own_example_is_read() -> None:
    path = sample("traces/otlp/trace.json")
    piece = _piece(path.read_bytes())
    (one,) = piece.spans
    assert (piece.task, one.id, one.parent) == (
        "5b8efff798038103d269b633813fc60c",
        "eee19b7ec3c1b174",
        "eee19b7ec3c1b173",
    )
    assert (one.name, one.start, one.end) == ("I'm a server span", 1544712660.0, 1544712661.0)


@pytest.mark.parametrize(("name", "spans"), [("example_trace", 5), ("link_attributes_trace", 1), ("otlp2jaeger-in", 2)])
def test_traces_of_ordinary_services_are_read_too(name: str, spans: int) -> None:
    path = sample(f"traces/jaeger/{name}.json")
    assert len(_piece(path.read_bytes()).spans) == spans


def test_a_trace_is_one_task_however_it_is_spread() -> None:
    lines = [message(span(1, "invoke_agent a", 0, 3, AGENT)), message(span(2, "chat m", 0, 1, CHAT, parent=1))]
    spread = _piece(b"\n".join(lines), message(span(3, "chat m", 1, 2, CHAT, parent=1)))
    assert [one.id for one in spread.spans] == [f"{n:016x}" for n in (1, 2, 3)]


def test_protobuf_means_the_same_as_json() -> None:
    data = message(
        span(1, "invoke_agent a", 0, 3, AGENT),
        span(2, "chat m", 0, 1, CHAT | {"gen_ai.usage.input_tokens": 7}, parent=1, kind=3),
        resource={"host.name": "h1"},
    )
    binary = protobuf(*from_json(data).spans).SerializeToString()
    stream = b"".join(len(one).to_bytes(4, "big") + one for one in (binary, binary))
    assert _piece(binary) == _piece(data)
    twice = _piece(stream)
    assert [one.id for one in twice.spans] == [f"{n:016x}" for n in (1, 2, 1, 2)]


@pytest.mark.parametrize("size", [91, 123])
def test_protobuf_that_begins_like_json_is_still_protobuf(size: int) -> None:
    """A newline is the first tag; 91 and 123 bytes are written as an opening bracket and brace."""
    raw = from_json(message(span(1, "work", 0, 1))).spans[0]
    raw.name = "x" * (size - len(protobuf(raw).SerializeToString()) + 2 + len(raw.name))
    binary = protobuf(raw).SerializeToString()
    assert binary[:2] in (b"\n{", b"\n[")
    assert _piece(binary).spans[0].name == raw.name


def test_a_file_that_was_cut_off_gives_what_is_whole() -> None:
    whole = message(span(1, "work", 0, 1))
    pieces, skips = read(Otlp(), document(whole + b"\n" + whole[:90]))
    assert [len(piece.spans) for piece in pieces] == [1]
    assert [(skip.reason, skip.count) for skip in skips.all()] == [("a record that is broken or no OTLP message", 1)]


def test_spans_without_ids_are_tasks_of_their_own() -> None:
    nameless = [{key: one for key, one in span(1, "llm_request", 0, 1).items() if key not in {"traceId", "spanId"}}] * 2
    pieces, skips = read(Otlp(), document(message(*nameless)))
    assert not skips.all()
    assert len({piece.task for piece in pieces}) == 2
    assert all(len(piece.task) == 32 and len(piece.spans[0].id) == 16 for piece in pieces)


def test_all_that_name_a_session_name_it_for_the_others() -> None:
    piece = _task(span(1, "a", 0, 3), span(2, "chat m", 0, 1, CHAT | {"gen_ai.conversation.id": "c1"}, parent=1))
    assert [one.session for one in piece.spans] == ["c1", "c1"]
    two = _task(span(1, "a", 0, 3, {"session.id": "c1"}), span(2, "b", 0, 1, {"session.id": "c2"}), span(3, "c", 0, 1))
    assert [one.session for one in two.spans] == ["c1", "c2", None]


def test_the_title_is_what_the_user_asked_first() -> None:
    def asked(text: str) -> dict[str, object]:
        return CHAT | {"gen_ai.input.messages": json.dumps([{"role": "user", "content": text}])}

    piece = _task(span(2, "chat m", 1, 2, asked("and then?")), span(1, "chat m", 0, 1, asked("how warm\nis it?")))
    assert piece.title == "how warm is it?"


def test_orphans_are_never_dropped() -> None:
    piece = _task(span(1, "invoke_agent a", 0, 3, AGENT), span(2, "chat m", 0, 1, CHAT, parent=99))
    assert len(piece.spans) == 2
    assert dissect(piece.spans).calls == 1


def test_usage_of_parent_and_child_is_counted_once() -> None:
    counts: dict[str, object] = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 9}
    piece = _task(
        span(1, "invoke_agent a", 0, 3, AGENT | counts),
        span(2, "call_llm", 0, 2, {"gen_ai.request.model": "m"} | counts, parent=1),
        span(3, "chat m", 0.1, 1.9, CHAT | counts, parent=2),
    )
    anatomy = dissect(piece.spans)
    assert (anatomy.calls, anatomy.usage.input_tokens, anatomy.usage.output_tokens) == (1, 100, 9)


def test_a_consumer_is_not_waited_for_by_its_producer() -> None:
    piece = _task(
        span(1, "invoke_agent a", 0, 3, AGENT),
        span(2, "send", 1, 1.1, parent=1, kind=4),
        span(3, "process", 2, 9, parent=2, kind=5),
        span(4, "receive", 2, 3, parent=1, kind=5),
    )
    assert {int(one.id, 16): one.awaited for one in piece.spans} == {1: True, 2: True, 3: False, 4: True}


def test_the_hop_between_a_client_and_its_server_is_what_the_server_did_not_take() -> None:
    """As Anthropic's SDK and API record one call under one traceparent."""
    piece = _task(
        span(1, "invoke_agent a", 0, 4, AGENT),
        span(2, "chat m", 0, 4, CHAT | {"gen_ai.usage.output_tokens": 9}, parent=1, kind=3),
        span(3, "POST /v1/messages", 0.3, 3.8, {"http.request.method": "POST"}, parent=2, kind=2),
        span(4, "chat m", 0.5, 3.5, CHAT, parent=3, kind=2),
    )
    anatomy = dissect(piece.spans)
    assert (anatomy.calls, anatomy.usage.output_tokens) == (1, 9)
    assert anatomy.phases[Phase.MODEL] == pytest.approx(3.0, abs=1e-5)
    assert anatomy.phases[Phase.HOP] == pytest.approx(1.0, abs=1e-5)


def test_requests_that_were_sent_again_are_attempts_and_others_are_not() -> None:
    post: dict[str, object] = {"http.request.method": "POST"}
    piece = _task(
        span(1, "chat m", 0, 9, CHAT),
        span(2, "POST", 0, 1, post | {"url.full": "https://api/v1/messages?beta=1"}, parent=1, kind=3),
        span(3, "POST", 1, 2, post | {"url.full": "https://api/v1/messages"}, parent=1, kind=3),
        span(4, "POST", 2, 3, post | {"url.full": "https://trace/api/sessions"}, parent=1, kind=3),
        span(5, "GET", 2, 3, {"http.request.method": "GET"}, parent=1, kind=3),
    )
    ((_, call),) = calls_of(piece.spans)
    assert call.attempts == 2


def test_a_resend_count_tells_of_requests_that_were_not_recorded() -> None:
    post: dict[str, object] = {"http.request.method": "POST", "http.request.resend_count": 2}
    ((_, call),) = calls_of(_task(span(1, "chat m", 0, 9, CHAT), span(2, "POST", 0, 1, post, parent=1, kind=3)).spans)
    assert call.attempts == 3


def test_a_call_without_http_spans_may_hide_retries() -> None:
    ((_, call),) = calls_of(_task(span(1, "chat m", 0, 9, CHAT)).spans)
    assert call.attempts is None


def test_a_tool_was_asked_for_by_the_answer_that_names_it() -> None:
    asks = json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "t", "arguments": {}}]}]
    )
    piece = _task(
        span(1, "invoke_agent a", 0, 9, AGENT),
        span(2, "chat m", 0, 1, CHAT | {"gen_ai.output.messages": asks}, parent=1),
        span(3, "chat m", 1, 2, CHAT, parent=1),
        span(4, "execute_tool t", 3, 4, TOOL | {"gen_ai.tool.call.id": "c1"}, parent=1),
    )
    assert _issuers(piece) == {4: 2}
    assert not piece.remarks


def test_a_tool_was_asked_for_by_the_last_call_before_it_where_answers_were_not_kept() -> None:
    piece = _task(
        span(1, "invoke_agent a", 0, 9, AGENT),
        span(2, "chat m", 0, 1, CHAT, parent=1),
        span(3, "execute_tool t", 1, 2, TOOL | {"gen_ai.tool.call.id": "c1"}, parent=1),
        span(4, "chat m", 2, 3, CHAT, parent=1),
        span(5, "step", 3, 4, parent=1),
        span(6, "execute_tool t", 3, 4, TOOL, parent=5),
    )
    assert _issuers(piece) == {3: 2, 6: 4}
    (_, first), (_, second) = calls_of(piece.spans)
    assert first.tool_calls == (ToolCallRef("c1", "t"),)
    assert second.tool_calls == ()  # its tool call has no id to name it by
    assert any("from their order" in remark for remark in piece.remarks)


def test_a_sub_agents_calls_ask_for_no_tools_of_the_agent_above() -> None:
    piece = _task(
        span(1, "invoke_agent a", 0, 9, AGENT),
        span(2, "chat m", 0, 1, CHAT, parent=1),
        span(3, "execute_tool t", 1, 5, TOOL, parent=1),
        span(4, "invoke_agent b", 1, 5, AGENT, parent=3),
        span(5, "chat m", 1, 4, CHAT, parent=4),
        span(6, "execute_tool t", 4, 5, TOOL, parent=4),
        span(7, "execute_tool t", 5, 6, TOOL, parent=1),
    )
    assert _issuers(piece) == {3: 2, 6: 5, 7: 2}


def test_a_tool_inside_a_call_was_asked_for_by_it() -> None:
    piece = _task(span(1, "chat m", 0, 9, CHAT), span(2, "execute_tool t", 3, 4, TOOL, parent=1))
    assert _issuers(piece) == {2: 1}


def test_a_circle_of_parents_harms_nobody() -> None:
    piece = _task(span(1, "chat m", 0, 9, CHAT, parent=2), span(2, "execute_tool t", 3, 4, TOOL, parent=1))
    assert len(piece.spans) == 2


def test_a_stream_ends_with_its_later_record_which_brings_its_usage() -> None:
    """Logfire's own instrumentation: the span ends when the stream is handed over."""
    request: dict[str, object] = {"request_data": json.dumps({"model": "m", "stream": True})}
    late: dict[str, object] = {"duration": 3.0, "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7}
    piece = _task(
        span(1, "chat", 0, 1, request),
        span(2, "other call", 0, 0.2, request),
        span(3, "streaming response from 'm' took 3.00s", 4, 4, late),
        scope="logfire.openai",
    )
    (one, call), (other, _) = calls_of(piece.spans)
    assert (one.end, call.usage, call.stream) == (AT + 4, Usage(input_tokens=7), True)
    assert other.end == AT + 0.2
    assert len(piece.spans) == 2


def test_the_end_of_a_stream_that_nobody_began_stays_a_span() -> None:
    piece = _task(span(1, "streaming response took 3.00s", 4, 4, {"duration": 3.0}), scope="logfire.openai")
    assert len(piece.spans) == 1


def test_a_person_who_is_asked_is_waited_for_not_worked_on() -> None:
    """As Claude Code records a tool that needs leave."""
    piece = _task(
        span(1, "claude_code.interaction", 0, 9, {"span.type": "interaction", "user_prompt": "tidy up"}),
        span(2, "claude_code.llm_request", 0, 1, {"span.type": "llm_request", "model": "m", "ttft_ms": 500}, parent=1),
        span(3, "claude_code.tool", 1, 8, {"span.type": "tool", "tool_name": "Bash"}, parent=1),
        span(4, "claude_code.tool.blocked_on_user", 1, 6, {"span.type": "tool.blocked_on_user"}, parent=3),
        span(5, "claude_code.tool.execution", 6, 8, {"span.type": "tool.execution"}, parent=3),
        span(6, "claude_code.llm_request", 8, 9, {"span.type": "llm_request", "model": "m"}, parent=1),
    )
    assert piece.title == "tidy up"
    assert [one.work for one in piece.spans if int(one.id, 16) == 4] == [HumanWait()]
    anatomy = dissect(piece.spans)
    assert (anatomy.n, anatomy.human) == (2, pytest.approx(5.0, abs=1e-5))
    assert anatomy.e2e == pytest.approx(4.0, abs=1e-5)
    assert anatomy.phases[Phase.TOOL] == pytest.approx(2.0, abs=1e-5)


def test_a_trace_that_was_closed_all_at_once_has_no_times() -> None:
    """As BeeAI's are: every span ends when it is exported."""
    calls = [span(n, "chat m", n, 9, CHAT, parent=1) for n in range(2, 7)]
    piece = _task(span(1, "invoke_agent a", 0, 9, AGENT), *calls)
    assert piece.timing == "none"
    assert {(one.start, one.end) for one in piece.spans} == {(0.0, 0.0)}


def test_twice_the_same_span_is_left_to_the_tree() -> None:
    piece = _task(span(1, "chat m", 0, 9, CHAT), span(1, "chat m", 0, 9, CHAT))
    assert len(piece.spans) == 2
    assert dissect(piece.spans).calls == 1


def test_nanoseconds_are_not_lost_in_sums() -> None:
    (one,) = _task(span(1, "work", 0.123456, 0.123457)).spans
    assert one.end is not None
    assert one.end - one.start == pytest.approx(1e-6, abs=3e-7)  # what a float holds of epoch seconds


def _originals() -> list[bytes]:
    lines = [
        message(span(1, "invoke_agent a", 0, 3, AGENT), span(2, "chat m", 0, 1, CHAT, parent=1)),
        message(span(3, "execute_tool t", 1, 2, TOOL | {"gen_ai.tool.call.arguments": '{"a": [1]}'}, parent=1)),
    ]
    return [b"\n".join(lines), protobuf(*(raw for line in lines for raw in from_json(line).spans)).SerializeToString()]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_raises(data: st.DataObject) -> None:
    pieces = list(Otlp().read([document(data.draw(damaged(_originals())))], Skips()))
    assert all(piece.task and piece.spans for piece in pieces)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    files = sorted(sample("traces/handmade").glob("*.json"))
    original = data.draw(st.sampled_from(files)).read_bytes()
    for piece in Otlp().read([document(data.draw(damaged([original])))], Skips()):
        assert piece.task == TRACE or piece.spans
