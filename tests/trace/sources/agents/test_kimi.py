from collections.abc import Sequence

from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.sources.agents.kimi import Kimi
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

REAL = "agent-sessions_kimi_assistant_tools.jsonl"
START = 1_772_359_200_000  # 2026-03-01T10:00:00Z, in milliseconds


def line(what: str, second: float, **more: object) -> dict[str, object]:
    return {"type": what, "time": START + int(second * 1000), **more}


def loop(second: float, kind: str, **more: object) -> dict[str, object]:
    return line("context.append_loop_event", second, event={"type": kind, **more})


def request(second: float) -> dict[str, object]:
    return line("llm.request", second, kind="loop", model="kimi-test", provider="kimi")


def ended(second: float, first: int, stream: int, reason: str) -> dict[str, object]:
    usage = {"inputOther": 100, "output": 20, "inputCacheRead": 900, "inputCacheCreation": 50}
    timed = {"llmFirstTokenLatencyMs": first, "llmStreamDurationMs": stream}
    return loop(second, "step.end", usage=usage, finishReason=reason, **timed)


ROWS = [
    {"type": "metadata", "protocol_version": "1.4", "created_at": START},
    line("turn.prompt", 0, input=[{"type": "text", "text": "List the files"}]),
    line(
        "context.append_message", 0, message={"role": "user", "content": "List the files", "origin": {"kind": "user"}}
    ),
    line("context.append_message", 0, message={"role": "user", "content": "Be brief", "origin": {"kind": "injection"}}),
    request(1),
    loop(4, "content.part", part={"type": "think", "think": "Hm."}),
    line("permission.record_approval_result", 14, toolCallId="c-1", result={"decision": "approved"}),
    loop(14, "tool.call", toolCallId="c-1", name="Bash", args={"command": "ls"}),
    loop(15, "tool.result", toolCallId="c-1", result={"output": "a.txt", "isError": True}),
    ended(15, 1000, 2000, "tool_use"),
    request(16),
    loop(19, "content.part", part={"type": "text", "text": "One file."}),
    ended(19, 1500, 1500, "end_turn"),
]


def take(rows: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(Kimi(), document(lines(rows), "wire.jsonl"))


def test_a_call_ends_with_its_stream_and_the_wait_for_an_approval_is_a_persons() -> None:
    (piece,), skips = take(ROWS)
    assert not skips
    assert (piece.timing, piece.title) == ("spans", "List the files")
    assert [at(chat, piece) for chat in chats(piece)] == [(1, 4), (16, 19)]
    assert [at(wait, piece) for wait in waits(piece)] == [(4, 14)]
    (tool,) = tools(piece)
    assert isinstance(tool.work, ToolUse)
    assert (at(tool, piece), tool.error, tool.work.failed, tool.work.inferred) == ((14, 15), "tool_error", True, False)
    anatomy = dissect(piece.spans)
    assert (round(anatomy.e2e, 3), round(anatomy.human, 3), anatomy.n) == (9, 10, 2)


def test_first_and_last_tokens_are_the_programs_own_and_the_input_includes_the_cache() -> None:
    (piece,), _ = take(ROWS)
    first, second = calls(piece)
    start = START / 1000
    assert (first.first_token, first.last_token, first.stream) == (start + 2, start + 4, True)
    assert (second.first_token, second.finish_reason, second.provider) == (start + 17.5, "end_turn", "kimi")
    assert first.usage == Usage(input_tokens=1050, output_tokens=20, cache_read=900, cache_write=50)
    asked = (part("user", "List the files"), part("user", "Be brief"))
    assert first.prompt == asked
    assert second.prompt == (*asked, part("assistant", 'Bash({"command":"ls"})'), part("tool", "a.txt"))


def test_a_request_without_an_end_never_ended() -> None:
    (piece,), _ = take(ROWS[:5])
    assert [at(chat, piece) for chat in chats(piece)] == [(1, None)]
    assert any("no end in the record" in remark for remark in piece.remarks)


def test_a_compaction_that_the_user_asked_for_is_a_task_and_begins_a_new_history() -> None:
    rows = [
        *ROWS,
        line("full_compaction.begin", 30, source="manual"),
        line("llm.request", 30, kind="compaction", model="kimi-test", provider="kimi"),
        line("usage.record", 40, usage={"inputOther": 10, "output": 5, "inputCacheRead": 0, "inputCacheCreation": 0}),
        line("context.apply_compaction", 40, summary="A file was listed."),
        line("turn.prompt", 50, input=[{"type": "text", "text": "Again"}]),
        request(51),
        ended(53, 1000, 1000, "end_turn"),
    ]
    pieces, _ = take(rows)
    assert [piece.title for piece in pieces] == ["List the files", "/compact", "Again"]
    assert at(chats(pieces[1])[0], pieces[1]) == (0, 10)
    assert calls(pieces[1])[0].usage == Usage(input_tokens=10, output_tokens=5, cache_read=0, cache_write=0)
    assert calls(pieces[2])[0].prompt == (part("user", "A file was listed."), part("user", "Again"))


def test_what_cannot_be_used_is_counted() -> None:
    pieces, skips = take([*ROWS, {"type": "turn.prompt", "time": "now"}, line("turn.prompt", 99, input=[])])
    assert len(pieces) == 1
    assert reasons(skips) == {
        "a field of the wrong type, left out: time": 1,
        "a request that was never answered": 1,
    }


def test_a_line_whose_time_is_damaged_came_no_earlier_than_the_one_before() -> None:
    (whole,), _ = take(ROWS)
    for number, row in enumerate(ROWS):
        if "time" in row:
            (piece,), skips = take([*ROWS[:number], {**row, "time": "now"}, *ROWS[number + 1 :]])
            work = [[span.name for span in one.spans if span not in waits(one)] for one in (piece, whole)]
            assert work[0] == work[1]
            assert [call.usage for call in calls(piece)] == [call.usage for call in calls(whole)]
            assert reasons(skips) == {"a field of the wrong type, left out: time": 1}


def test_it_claims_its_own_file_and_no_others() -> None:
    assert claimed(Kimi()) == {f"other_agents/{REAL}"}


def test_a_real_session() -> None:
    pieces, skips = read(Kimi(), document(sample(f"traces/other_agents/{REAL}").read_bytes(), REAL))
    assert not skips
    assert [piece.title for piece in pieces] == [
        *["hi"] * 3,
        "run ls command",
        "cat /nonexistent-file-xyz",
        "run subagent to count swift files in this repo",
        "plan counting all html files in this repo",
        'read README.md then grep for "Kimi"',
        "/compact",
    ]
    assert [len(calls(piece)) for piece in pieces] == [1, 1, 1, 3, 2, 2, 11, 3, 1]
    assert sum(len(tools(piece)) for piece in pieces) == 19
    assert [chat.end is None for piece in pieces[:3] for chat in chats(piece)] == [True, True, False]
    assert calls(pieces[2])[0].usage == Usage(input_tokens=24279, output_tokens=42, cache_read=14848, cache_write=0)
    assert at(chats(pieces[2])[0], pieces[2]) == (0.018, 4.2)
    assert [tool.error for tool in tools(pieces[4])] == ["tool_error"]
    approvals = [at(wait, pieces[6]) for wait in waits(pieces[6]) if wait.parent is not None]
    assert [round((end or 0) - start, 1) for start, end in approvals] == [1.4, 1.8, 2413.7, 969.6, 11.5, 3.6]
    assert round(dissect(pieces[6].spans).e2e) == 140  # of the 3,541 s between the prompt and the answer
    assert any("kept in another file" in remark for remark in pieces[5].remarks)


def test_no_damage_raises() -> None:
    assert_unharmed(Kimi, [lines(ROWS)])


def test_no_damage_to_the_real_file_raises() -> None:
    assert_unharmed(Kimi, [sample(f"traces/other_agents/{REAL}").read_bytes()], 40)
