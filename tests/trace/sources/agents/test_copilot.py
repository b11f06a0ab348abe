from collections.abc import Sequence

from claims import claimed
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools

from headway.core.span import Step, ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.sources.agents.copilot import Copilot
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

REAL = "agent-sessions_copilot_small.jsonl"


def event(kind: str, second: int, **data: object) -> dict[str, object]:
    stamp = f"2026-03-01T10:00:{second:02}.000Z"
    return {"type": kind, "data": data, "id": f"{kind}-{second}", "timestamp": stamp, "parentId": None}


def asks(call: str, name: str) -> list[dict[str, object]]:
    return [{"toolCallId": call, "name": name, "arguments": {"x": 1}}]


ROWS = [
    event("session.start", 0, sessionId="s-1", selectedModel="m-1"),
    event("user.message", 1, content="List the files"),
    event("assistant.message", 3, content="I look.", toolRequests=asks("c-1", "shell"), outputTokens=12),
    event("tool.execution_start", 4, toolCallId="c-1", toolName="shell", arguments={"x": 1}),
    event("tool.execution_complete", 6, toolCallId="c-1", success=True, result={"content": "a.txt"}),
    event("assistant.message", 9, content="One file.", model="m-2", outputTokens=3),
]


def take(rows: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(Copilot(), document(lines(rows)))


def test_a_call_runs_from_its_input_to_its_message_and_a_tool_as_long_as_it_says() -> None:
    (piece,), skips = take(ROWS)
    assert not skips
    assert (piece.title, piece.spans[0].session) == ("List the files", "s-1")
    assert [(span.name, at(span, piece)) for span in piece.spans[1:]] == [
        ("chat m-1", (0, 2)),
        ("execute_tool shell", (3, 5)),
        ("chat m-2", (5, 8)),
    ]
    (tool,) = tools(piece)
    assert isinstance(tool.work, ToolUse)
    assert (tool.work.inferred, tool.work.failed, tool.work.issued_by) == (False, False, chats(piece)[0].id)
    assert [call.usage for call in calls(piece)] == [Usage(output_tokens=12), Usage(output_tokens=3)]
    assert calls(piece)[1].prompt == (
        part("user", "List the files"),
        part("assistant", 'I look.\nshell({"x":1})'),
        part("tool", "a.txt"),
    )


def test_a_sub_agent_stands_under_the_tool_that_started_it() -> None:
    rows = [
        *ROWS[:2],
        event("assistant.message", 2, content="", toolRequests=asks("t-1", "task")),
        event("tool.execution_start", 3, toolCallId="t-1", toolName="task"),
        event("subagent.started", 3, toolCallId="t-1", agentName="explore"),
        event("assistant.message", 5, parentToolCallId="t-1", content="", toolRequests=asks("u-1", "grep")),
        event("tool.execution_start", 5, parentToolCallId="t-1", toolCallId="u-1", toolName="grep"),
        event("tool.execution_complete", 7, parentToolCallId="t-1", toolCallId="u-1", success=False),
        event("assistant.message", 9, parentToolCallId="t-1", content="None."),
        event("tool.execution_complete", 10, toolCallId="t-1", success=True, result={"content": "None."}),
        event("assistant.message", 12, content="Nothing."),
    ]
    (piece,), skips = take(rows)
    assert not skips
    (agent,) = agents(piece)
    task, grep = tools(piece)
    assert (agent.name, agent.parent, at(agent, piece)) == ("invoke_agent explore", task.id, (2, 8))
    assert (grep.parent, grep.error, at(grep, piece)) == (agent.id, "tool_error", (4, 6))
    assert [at(chat, piece) for chat in chats(piece)] == [(0, 1), (9, 11), (2, 4), (6, 8)]


def shutdown(second: int, **data: object) -> dict[str, object]:
    return event("session.shutdown", second, shutdownType="routine", **data)


DETAILS = {"input": 100, "output": 15, "cache_read": 5, "cache_write": 2}


def test_the_sessions_own_total_is_the_tasks_where_there_is_but_one() -> None:
    details = {kind: {"tokenCount": tokens} for kind, tokens in DETAILS.items()}
    (piece,), skips = take([*ROWS, shutdown(12, tokenDetails=details, modelMetrics={"m-1": {"requests": 2}})])
    assert not skips
    root = piece.spans[0].work
    assert isinstance(root, Step)
    assert root.used == Usage(input_tokens=107, output_tokens=15, cache_read=5, cache_write=2)
    assert any("without them" in remark for remark in piece.remarks)
    anatomy = dissect(piece.spans)
    assert (anatomy.usage.input_tokens, anatomy.usage.output_tokens, anatomy.own_totals) == (107, 15, ("tokens",))


def test_totals_by_model_hold_the_cache_and_those_of_several_runs_add_up() -> None:
    def metrics(tokens: int) -> dict[str, object]:
        usage = {"inputTokens": tokens, "outputTokens": 10, "cacheReadTokens": 40, "cacheWriteTokens": 0}
        return {"modelMetrics": {"m-1": {"usage": usage}, "m-2": {"usage": usage}}}

    again = [event("session.resume", 20), shutdown(21, **metrics(50))]
    (piece,), _ = take([*ROWS, shutdown(12, **metrics(100)), *again])
    root = piece.spans[0].work
    assert isinstance(root, Step)
    assert root.used == Usage(input_tokens=300, output_tokens=40, cache_read=160, cache_write=0)
    assert not any("without them" in remark for remark in piece.remarks)
    (unsure,), _ = take([*ROWS, shutdown(12, **metrics(100)), event("session.resume", 20)])
    assert unsure.spans[0].work == Step(agent="copilot")  # what the second run used is not told


def test_the_total_of_several_tasks_is_only_told() -> None:
    details = {kind: {"tokenCount": tokens} for kind, tokens in DETAILS.items()}
    more = [event("user.message", 20, content="More"), event("assistant.message", 22, content="No.")]
    pieces, _ = take([*ROWS, *more, shutdown(30, tokenDetails=details)])
    assert [piece.spans[0].work for piece in pieces] == [Step(agent="copilot")] * 2
    told = "The session's own total is of 2 tasks together: 107 tokens read and 15 written."
    assert all(told in piece.remarks for piece in pieces)


def test_a_part_of_the_total_that_is_damaged_leaves_the_whole_input_unknown() -> None:
    details = {"input": {"tokenCount": 100}, "output": {"tokenCount": 15}, "cache_read": {"tokenCount": "n/a"}}
    (piece,), skips = take([*ROWS, shutdown(12, tokenDetails=details)])
    root = piece.spans[0].work
    assert isinstance(root, Step)
    assert root.used == Usage(output_tokens=15)
    assert reasons(skips) == {"a field of the wrong type, left out: data.tokenDetails[].tokenCount": 1}


def failed(second: int, **data: object) -> dict[str, object]:
    return event("session.error", second, errorType="rate_limit", message="Too many", **data)


def test_an_error_before_anything_was_asked_is_told_with_the_first_task() -> None:
    (piece,), skips = take([ROWS[0], failed(0, statusCode=429), *ROWS[1:]])
    assert not skips
    assert piece.spans[0].error is None
    assert "Before this was asked, the session told of an error: rate_limit (HTTP status 429)." in piece.remarks
    nothing, skips = take([ROWS[0], failed(0)])
    assert not nothing
    assert reasons(skips) == {"an error that no request came after": 1}


def test_an_error_of_an_engine_is_a_call_that_failed_and_with_it_the_task_unless_it_goes_on() -> None:
    (broken,), _ = take([*ROWS[:5], failed(8, statusCode=429)])
    call = chats(broken)[1]
    assert (call.error, at(call, broken), broken.spans[0].error) == ("rate_limit", (5, 7), "rate_limit")
    (mended,), _ = take([*ROWS[:5], failed(7, statusCode=429), ROWS[5]])
    assert [(call.error, at(call, mended)) for call in chats(mended)] == [
        (None, (0, 2)),
        ("rate_limit", (5, 6)),
        (None, (6, 8)),
    ]
    assert mended.spans[0].error is None
    (elsewhere,), _ = take([*ROWS[:5], failed(8)])
    assert (len(chats(elsewhere)), elsewhere.spans[0].error) == (1, "rate_limit")


def test_an_abort_interrupts_and_what_cannot_be_used_is_counted() -> None:
    orphan = event("tool.execution_complete", 11, toolCallId="nobody")
    (piece,), skips = take([*ROWS, event("abort", 10), orphan, {"type": "abort"}, event("user.message", 20)])
    assert piece.spans[0].error == "interrupted"
    assert reasons(skips) == {
        "a tool's result whose start is not in the record": 1,
        "a line that is not JSON, or not an event with its time": 1,
        "a request that was never answered": 1,
    }


def test_it_claims_its_own_file_and_no_others() -> None:
    assert claimed(Copilot()) == {f"other_agents/{REAL}"}


def test_a_real_session() -> None:
    (piece,), skips = read(Copilot(), document(sample(f"traces/other_agents/{REAL}").read_bytes()))
    assert reasons(skips) == {"a line that is not JSON, or not an event with its time": 16}  # times were trimmed
    assert (piece.title, piece.spans[0].session) == ("List the files", "copilot_stage0_small")
    assert [at(span, piece) for span in piece.spans] == [(0, 5), (0, 2), (3, 4), (4, 5)]
    assert piece.spans[0].work == Step(
        agent="copilot", used=Usage(input_tokens=105, output_tokens=15, cache_read=5, cache_write=0)
    )
    assert "Before this was asked, the session told of an error: query (HTTP status 400)." in piece.remarks
    assert [call.usage.output_tokens for call in calls(piece)] == [12, 3]


def test_no_damage_raises() -> None:
    assert_unharmed(Copilot, [lines(ROWS)])


def test_no_damage_to_the_real_file_raises() -> None:
    assert_unharmed(Copilot, [sample(f"traces/other_agents/{REAL}").read_bytes()], 40)
