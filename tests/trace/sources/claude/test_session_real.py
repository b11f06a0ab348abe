"""Expected values are read by hand from the files."""

import pytest
from claude_rows import imported, real, step
from sessions import assert_unharmed, at, calls, reasons, tools, waits

from headway.core.usage import Usage
from headway.trace.sources.claude.session import ClaudeCode


def test_a_record_of_answers_alone_has_tokens_and_money_but_no_times() -> None:
    (piece,), _ = imported("ccusage_project-alpha.jsonl")
    assert piece.timing == "none"
    assert [(span.start, span.end) for span in piece.spans] == [(0.0, 0.0)] * 4
    assert [(call.model, call.cost) for call in calls(piece)] == [
        ("claude-sonnet-4-20250514", 120_000),
        ("claude-opus-4-20250514", 340_000),
        ("claude-sonnet-4-20250514", 560_000),
    ]
    assert [call.usage for call in calls(piece)] == [
        Usage(input_tokens=135, output_tokens=50, cache_read=10, cache_write=25),
        Usage(input_tokens=270, output_tokens=75, cache_read=20, cache_write=50),
        Usage(input_tokens=340, output_tokens=125, cache_read=40, cache_write=0),
    ]
    (piece,), _ = imported("ccusage_project-beta.jsonl")
    assert [call.usage.input_tokens for call in calls(piece)] == [70, 115]


@pytest.mark.parametrize("name", ["agentsview_tool_call_pending.jsonl", "agentsview_valid_session.jsonl"])
def test_rows_without_any_ids(name: str) -> None:
    pieces, skips = imported(name)
    assert not skips
    first = pieces[0]
    assert [at(span, first) for span in first.spans] == [(0, 5), (0, 5), (5, None)]
    (tool,) = tools(first)
    assert tool.name == "execute_tool Read"
    if name == "agentsview_tool_call_pending.jsonl":
        assert calls(first)[0].usage == Usage(input_tokens=100, output_tokens=50)
        assert len(pieces) == 1
    else:
        assert calls(first)[0].usage == Usage(input_tokens=600, output_tokens=50, cache_read=300, cache_write=200)
        assert calls(pieces[1])[0].usage == Usage(input_tokens=650, output_tokens=75, cache_read=500, cache_write=0)
        assert at(waits(pieces[1])[0], pieces[1]) == (-295, 0)


def test_a_web_export() -> None:
    pieces, skips = imported("cct_sample_session.json")
    assert not skips
    assert [(len(calls(piece)), len(tools(piece)), at(piece.spans[0], piece)[1]) for piece in pieces] == [
        (5, 5, 50),
        (3, 3, 30),
        (2, 1, 15),
        (3, 2, 25),
        (2, 1, 15),
    ]
    assert [round(wait.start - wait.end) for piece in pieces for wait in waits(piece) if wait.end] == [
        -10,
        -30,
        -45,
        -95,
    ]
    assert [span.error for span in tools(pieces[2])] == ["tool_error"]
    assert len(calls(pieces[4])[0].prompt or ()) == 2  # the history before was compacted to one message


def test_a_session_with_a_summary() -> None:
    pieces, skips = imported("cct_sample_session.jsonl")
    assert not skips
    assert [(piece.title, len(calls(piece)), len(tools(piece))) for piece in pieces] == [
        ("Create a hello world function", 2, 2),
        ("Now add a goodbye function", 1, 0),
    ]
    assert [at(piece.spans[0], piece) for piece in pieces] == [(0, 20), (0, 5)]


def test_two_sessions_with_questions_that_stayed_open() -> None:
    pieces, skips = imported("claude-code-log_representative_messages.jsonl", "claude-code-log_session_b.jsonl")
    assert [(piece.spans[0].session, len(calls(piece)), at(piece.spans[0], piece)[1]) for piece in pieces] == [
        ("test_session", 1, 30),
        ("test_session", 2, 60),
        ("test_session", 2, 60),
        ("session_b", 1, 30),
    ]
    assert [call.usage.output_tokens for piece in pieces for call in calls(piece)] == [120, 85, 95, 35, 110, 35]
    assert [call.finish_reason for piece in pieces for call in calls(piece)][:3] == ["end_turn", "tool_use", "end_turn"]
    assert [at(tool, piece) for piece in pieces for tool in tools(piece)] == [(30, 31), (30, 31)]
    assert reasons(skips) == {"a request that was never answered": 2}


def test_a_sub_agents_file_without_ids_of_tools() -> None:
    pieces, skips = imported(
        "agent-sessions_agent-a0ad4f44468bdf20d.jsonl", "agent-sessions_0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl"
    )
    assert not skips
    (piece,) = pieces
    task, shell = tools(piece)
    assert (task.name, at(task, piece)) == ("execute_tool Task", (1, None))
    assert (step(piece).name, step(piece).parent, at(step(piece), piece)) == (
        "invoke_agent general-purpose",
        task.id,
        (1.2, 1.4),
    )
    assert (shell.name, at(shell, piece)) == ("execute_tool bash", (1.3, 1.4))
    assert len(calls(piece)) == 2


def test_no_damage_to_real_files_raises() -> None:
    assert_unharmed(ClaudeCode, [path.read_bytes() for path in sorted(real("").glob("*.json*"))], 50)
