import msgspec
import pytest
from claims import claimed
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, reasons, tools, waits

from headway.core.span import ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.answer import task_ttft
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.trace.sources.workloads.kv_cache_tester import KvCacheTester
from headway.trace.study import study


def request(t: float, inputs: str, stop: str, api_time: float | None, **more: object) -> dict[str, object]:
    made: dict[str, object] = {"t": t, "type": "n", "model": "m", "in": 1000, "out": 10, "hash_ids": [1, 2]}
    timed = {} if api_time is None else {"api_time": api_time}
    return {**made, "input_types": [inputs], "stop": stop, **timed, **more}


def session(*requests: dict[str, object]) -> bytes:
    head = {"id": "s-1", "models": ["m"], "block_size": 64, "hash_id_scope": "local"}
    return msgspec.json.encode({**head, "requests": requests})


def take(*requests: dict[str, object]) -> tuple[list[Piece], Skips]:
    return read(KvCacheTester(), document(session(*requests)))


def imported(name: str) -> tuple[list[Piece], Skips]:
    return read(KvCacheTester(), document(sample(f"workloads/kv-cache-tester/{name}").read_bytes()))


def test_a_task_is_what_came_of_one_text_and_gaps_in_it_are_tools() -> None:
    pieces, skips = take(
        request(0, "text", "tool_use", 4),
        request(7, "tool_result", "end_turn", 2),
        request(60, "text", "end_turn", 3, type="s", ttft=1.5),
    )
    assert not skips
    first, second = pieces
    assert (first.timing, first.spans[0].session) == ("spans", "s-1")
    assert [at(span, first) for span in first.spans] == [(0, 9), (0, 4), (4, 7), (7, 9)]
    (tool,) = tools(first)
    assert isinstance(tool.work, ToolUse)
    assert (tool.name, tool.work.inferred, tool.work.issued_by) == ("execute_tool unknown", True, chats(first)[0].id)
    assert [at(wait, second) for wait in waits(second)] == [(-51, 0)]
    (call,) = calls(second)
    assert (call.stream, call.first_token, call.usage) == (True, 61.5, Usage(input_tokens=1000, output_tokens=10))


def test_whole_histories_go_on_where_a_tool_was_waited_for_and_else_begin_anew() -> None:
    mixed = {"input_types": ["text", "tool_result", "tool_use"]}
    rows = [request(0, "text", "tool_use", 1), {**request(5, "", "end_turn", 1), **mixed}]
    assert len(take(*rows)[0]) == 1
    assert len(take(*rows, {**request(9, "", "end_turn", 1), **mixed})[0]) == 2


def test_answers_whose_end_is_not_recorded_never_ended_and_what_comes_then_is_told_to_be_taken() -> None:
    first, second = take(request(0, "text", "", None), request(9, "text", "end_turn", 1))[0]
    assert at(chats(first)[0], first) == (0, None)
    assert any("too short" in remark for remark in first.remarks)
    assert any("taken to be the user's" in remark for remark in second.remarks)


def test_sub_agents_are_written_down_when_they_end_or_when_they_are_sent_into_the_background() -> None:
    inner = [request(0, "text", "tool_use", 2), request(3, "tool_result", "end_turn", 1)]
    agent: dict[str, object] = {"type": "subagent", "subagent_type": "Explore", "requests": inner}
    awaited = {**agent, "t": 25.5, "duration_ms": 20500}
    background = {**agent, "t": 5.0, "duration_ms": None}
    (piece,), _ = take(
        request(0, "text", "tool_use", 4), awaited, background, request(26, "tool_result", "end_turn", 2)
    )
    assert [(tool.name, at(tool, piece)) for tool in tools(piece) if tool.parent == piece.spans[0].id] == [
        ("execute_tool Task", (5, 25.5)),
        ("execute_tool Task", (5, 5)),
    ]
    assert [(step.name, step.parent, at(step, piece)) for step in agents(piece)] == [
        ("invoke_agent Explore", tools(piece)[0].id, (5, 25.5)),
        ("invoke_agent Explore", piece.spans[0].id, (5, 9)),
    ]
    assert len(calls(piece)) == 6
    assert dissect(piece.spans).n == 4


@pytest.mark.parametrize(
    "broken", [b'{"block_size":64,"hash_id_scope":"local","requests":[{"t":1,"type":"n"}],"id":7}']
)
def test_a_session_of_another_shape_is_counted(broken: bytes) -> None:
    pieces, skips = read(KvCacheTester(), document(broken))
    assert not pieces
    assert reasons(skips) == {"a session that is not JSON, or not in this format": 1}


def test_a_session_that_two_files_hold_counts_once() -> None:
    one = document(session(request(0, "text", "end_turn", 4)))
    pieces, skips = read(KvCacheTester(), one, one)
    assert len(pieces) == 1
    assert reasons(skips) == {"a session that another file holds too: counted once": 1}


def test_it_claims_no_traces() -> None:
    assert claimed(KvCacheTester()) == set()


def test_a_real_session_with_three_agents_at_once() -> None:
    pieces, skips = imported("raw_sample/trace_0274.json")
    assert not skips
    assert [piece.spans[0].start for piece in pieces] == [0.0, 2648.0]
    own = [span.work for piece in pieces for span in chats(piece) if span.parent == piece.spans[0].id]
    assert len(own) == 57
    assert sum(call.usage.input_tokens or 0 for piece in pieces for call in calls(piece)) == 5990912
    assert sum(call.usage.output_tokens or 0 for piece in pieces for call in calls(piece)) == 48868
    steps = agents(pieces[0])
    assert [at(step, pieces[0]) for step in steps] == [(19.472, 160.959), (19.486, 173.475), (19.486, 300.351)]
    assert at(chats(pieces[0])[0], pieces[0]) == (0, 18.99)


def test_streams_are_timed_from_their_first_token() -> None:
    pieces, _ = imported("raw_sample/trace_0066.json")
    first = [at(chat, piece) for piece in pieces[:3] for chat in chats(piece)]
    assert first == [(0, None), (0, None), (0, 9.34), (18, None)]
    (call, _) = calls(pieces[2])
    assert call.first_token == pytest.approx(35 + 4.61)


def test_the_compact_form_says_the_same() -> None:
    raw, _ = imported("raw_sample/trace_0274.json")
    whole, skips = imported("traces_compact.jsonl")
    assert not skips
    assert [piece for piece in whole if piece.spans[0].session == "trace_0274"] == raw
    assert len({piece.spans[0].session for piece in whole}) == 487
    assert len(whole) == 5507
    assert sum(len(calls(piece)) for piece in whole) == 33445
    assert sum(len(agents(piece)) for piece in whole) == 50
    assert sum(call.first_token is not None for piece in whole for call in calls(piece)) > 3000


def test_no_damage_raises() -> None:
    assert_unharmed(
        KvCacheTester, [session(request(0, "text", "tool_use", 4), request(7, "tool_result", "end_turn", 2))]
    )


def test_no_damage_to_real_files_raises() -> None:
    compact = sample("workloads/kv-cache-tester/traces_compact.jsonl").read_bytes()[:60_000]
    assert_unharmed(KvCacheTester, [compact], 40)


def test_an_answer_with_text_beside_its_tool_calls_was_shown_when_it_came() -> None:
    (piece,) = take(
        request(0, "text", "tool_use", 4, output_types=["text", "thinking", "tool_use"]),
        request(7, "tool_result", "end_turn", 2, output_types=["thinking"]),
    )[0]
    assert [call.shown for call in calls(piece)] == [True, False]
    assert task_ttft(study(piece.spans), []) == 4
