from collections.abc import Sequence

from claims import claimed
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools

from headway.core.span import ToolUse
from headway.core.usage import Usage
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
    assert [call.usage.output_tokens for call in calls(piece)] == [12, 3]


def test_no_damage_raises() -> None:
    assert_unharmed(Copilot, [lines(ROWS)])


def test_no_damage_to_the_real_file_raises() -> None:
    assert_unharmed(Copilot, [sample(f"traces/other_agents/{REAL}").read_bytes()], 40)
