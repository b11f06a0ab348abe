from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ModelCall, Span, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.claude.session import ClaudeCode
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

SESSION = "5a0f2c1e-0000-4000-8000-000000000001"


def row(kind: str, second: float, said: object = None, **more: object) -> dict[str, object]:
    """A row as the program writes it; seconds count from 10:00:00."""
    minute, rest = divmod(second, 60)
    made: dict[str, object] = {
        "type": kind,
        "uuid": f"{SESSION[:8]}-{kind}-{second}-{msgspec.json.encode(said).decode()[:60]}",
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T10:{minute:02.0f}:{rest:06.3f}Z",
    }
    if said is not None:
        made["message"] = {"role": kind, "content": said}
    return {**made, **more}


def says(second: float, message: str, *blocks: object, **more: object) -> dict[str, object]:
    """A row of an answer: usage and model are the API's."""
    made = row("assistant", second, list(blocks), requestId=f"req_{message}")
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 200,
        "output_tokens": 40,
    }
    made["message"] = {
        "role": "assistant",
        "id": message,
        "model": "claude-test-1",
        "content": list(blocks),
        "stop_reason": None,
        "usage": {**usage, **more},
    }
    return made


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def use(call: str, name: str = "Bash", **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def result(
    second: float, call: str, words: object = "done", *, error: bool = False, **more: object
) -> dict[str, object]:
    said = {"type": "tool_result", "tool_use_id": call, "content": words, "is_error": error}
    return row("user", second, [said], **more)


def take(*files: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(ClaudeCode(), *[document(lines(rows), f"{n}.jsonl") for n, rows in enumerate(files)])


def real(name: str) -> Path:
    return sample(f"traces/claude_code/{name}")


def imported(*names: str) -> tuple[list[Piece], Skips]:
    return read(ClaudeCode(), *[document(real(name).read_bytes(), name) for name in names])


ONE_TURN = [
    row("user", 0, "Say what is in the folder"),
    says(2, "m1", text("I look."), output_tokens=1),
    says(3, "m1", use("t1", command="ls"), output_tokens=40),
    result(5, "t1", "a.txt"),
    says(9, "m2", text("One file."), output_tokens=12),
]


def test_a_call_runs_from_what_was_asked_to_its_last_block_and_a_tool_from_its_request_to_its_result() -> None:
    (piece,), skips = take(ONE_TURN)
    root, first, tool, second = piece.spans
    assert not skips
    assert (piece.timing, piece.title) == ("messages", "Say what is in the folder")
    assert [span.name for span in piece.spans] == [
        "invoke_agent claude-code",
        "chat claude-test-1",
        "execute_tool Bash",
        "chat claude-test-1",
    ]
    assert [at(span, piece) for span in piece.spans] == [(0, 9), (0, 3), (3, 5), (5, 9)]
    assert {span.parent for span in piece.spans[1:]} == {root.id}
    assert {span.session for span in piece.spans} == {SESSION}
    assert isinstance(first.work, ModelCall)
    assert isinstance(second.work, ModelCall)
    asked, looking = part("user", "Say what is in the folder"), part("assistant", 'I look.\nBash({"command":"ls"})')
    assert (first.work.prompt, first.work.answer) == ((asked,), looking)
    assert second.work.prompt == (asked, looking, part("tool", "a.txt"))
    assert isinstance(tool.work, ToolUse)
    assert (tool.work.call_id, tool.work.issued_by, tool.work.failed) == ("t1", first.id, False)
    assert tool.work.inferred
    assert tool.work.result == part("tool", "a.txt")


def test_the_input_includes_what_the_cache_read_and_took_once() -> None:
    (piece,), _ = take(ONE_TURN)
    assert calls(piece)[1].usage == Usage(input_tokens=1203, output_tokens=12, cache_read=1000, cache_write=200)
    assert any("Cache reads and writes were added" in remark for remark in piece.remarks)


def test_ccusage_901_938_rows_of_one_answer_count_once_with_the_largest_output() -> None:
    (piece,), _ = take(ONE_TURN)
    assert [call.usage.output_tokens for call in calls(piece)] == [40, 12]  # not 1 + 12, and not 1 + 40 + 12
    (piece,), _ = take([ONE_TURN[0], *reversed(ONE_TURN[1:3]), *ONE_TURN[3:]])
    assert calls(piece)[0].usage.output_tokens == 40


def test_claude_code_22686_a_count_that_no_whole_answer_could_have_is_unknown() -> None:
    (piece,), _ = take([row("user", 0, "Tell me all"), says(20, "m1", text("word " * 200), output_tokens=2)])
    assert calls(piece)[0].usage == Usage(input_tokens=1203, cache_read=1000, cache_write=200)
    assert any("before they had ended" in remark for remark in piece.remarks)


def test_counts_that_are_absent_are_unknown() -> None:
    answer = row("assistant", 2, [text("Hi")])
    (piece,), _ = take([row("user", 0, "Hello"), answer])
    assert calls(piece) == [ModelCall(model="unknown", prompt=(part("user", "Hello"),), answer=part("assistant", "Hi"))]
    assert not any("Cache" in remark for remark in piece.remarks)


def test_parallel_tools_count_from_the_end_of_the_answer_unless_they_ended_before_it() -> None:
    (piece,), _ = take(
        [
            row("user", 0, "Two things"),
            says(1, "m1", use("t1")),
            says(2, "m1", use("t2")),
            result(2.5, "t1"),
            says(3, "m1", use("t3")),  # still the same answer, although a result came in between
            result(7, "t3"),
            result(6, "t2"),
            says(9, "m2", text("Done.")),
        ]
    )
    assert [at(span, piece) for span in tools(piece)] == [(1, 2.5), (3, 6), (3, 7)]
    assert [at(span, piece) for span in piece.spans if isinstance(span.work, ModelCall)] == [(0, 3), (6, 9)]
    assert [reference.id for reference in calls(piece)[0].tool_calls] == ["t1", "t2", "t3"]


def test_a_person_is_waited_for_between_tasks_and_no_one_else() -> None:
    pieces, _ = take([*ONE_TURN, row("user", 60, "And now?"), says(64, "m3", text("Nothing."))])
    assert [piece.title for piece in pieces] == ["Say what is in the folder", "And now?"]
    assert len({piece.task for piece in pieces}) == 2
    assert not waits(pieces[0])
    (wait,) = waits(pieces[1])
    assert (at(wait, pieces[1]), wait.parent) == ((-51, 0), None)
    assert len(calls(pieces[1])[0].prompt or ()) == 5


def test_a_tool_that_a_person_answers_or_refuses_is_their_time() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    (piece,), _ = take(
        [
            row("user", 0, "Ask me"),
            says(1, "m1", use("t1", "AskUserQuestion", question="Which?")),
            result(31, "t1", "The second"),
            says(33, "m2", use("t2", command="rm -r x")),
            result(43, "t2", refused, error=True),
            row("user", 43.001, [text("[Request interrupted by user for tool use]")]),
        ]
    )
    question, command = tools(piece)
    assert [(wait.parent, at(wait, piece)) for wait in waits(piece)] == [(question.id, (1, 31)), (command.id, (33, 43))]
    assert (question.error, command.error, piece.spans[0].error) == (None, "rejected", "interrupted")


def test_a_tool_that_failed_says_so() -> None:
    (piece,), _ = take(
        [row("user", 0, "Go"), says(1, "m1", use("t1")), result(2, "t1", [text("No such file")], error=True)]
    )
    (tool,) = tools(piece)
    assert isinstance(tool.work, ToolUse)
    assert (tool.error, tool.work.failed) == ("tool_error", True)
    assert tool.work.result == part("tool", "No such file")


def test_tools_at_work_when_the_user_interrupts_end_there() -> None:
    (piece,), _ = take(
        [row("user", 0, "Go"), says(1, "m1", use("t1")), row("user", 4, [text("[Request interrupted by user]")])]
    )
    (tool,) = tools(piece)
    assert (at(tool, piece), tool.error, piece.spans[0].error) == ((1, 4), "interrupted", "interrupted")


def test_a_tool_without_a_result_never_ended() -> None:
    (piece,), _ = take([row("user", 0, "Go"), says(1, "m1", use("t1"))])
    assert at(tools(piece)[0], piece) == (1, None)
    assert at(piece.spans[0], piece) == (0, 1)


def test_a_resumed_session_repeats_rows_which_count_once() -> None:
    later = [*ONE_TURN, row("user", 60, "More"), says(61, "m3", text("No."))]
    pieces, skips = take(ONE_TURN, later)
    assert [len(piece.spans) for piece in pieces] == [4, 3]
    assert reasons(skips) == {"a row that another one repeats: counted once": 5}


def test_answers_that_another_session_took_over_under_new_row_ids_count_once() -> None:
    copied = [{**one, "uuid": f"copy-{n}", "sessionId": "other"} for n, one in enumerate(ONE_TURN)]
    pieces, skips = take(ONE_TURN, copied)
    assert len(pieces) == 1
    assert reasons(skips)["an answer that another session holds too: counted once"] == 3


def test_compaction_begins_a_new_history_and_its_call_is_told_but_not_counted() -> None:
    boundary = row("system", 30, subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 160000})
    (piece,), _ = take(
        [
            *ONE_TURN[:4],
            boundary,
            row("user", 30.1, "What was done so far: a listing.", isCompactSummary=True),
            says(33, "m2", text("One file.")),
        ]
    )
    assert [at(span, piece) for span in chats(piece)] == [(0, 3), (5, 30), (30.1, 33)]
    assert calls(piece)[1] == ModelCall(model="claude-test-1")
    assert calls(piece)[2].prompt == (part("user", "What was done so far: a listing."),)
    assert any("compacted" in remark for remark in piece.remarks)


def test_what_the_program_says_itself_is_no_call_but_a_failed_request_is() -> None:
    synthetic = says(20, "x1", text("No response requested."), input_tokens=0, output_tokens=0)
    synthetic["message"] = {**msgspec.convert(synthetic["message"], dict[str, object]), "model": "<synthetic>"}
    failed = {**synthetic, "uuid": "u-x2", "isApiErrorMessage": True, "error": "rate_limit"}
    retry = row("system", 12, subtype="api_error", error={"status": 529}, retryAttempt=1)
    (piece,), _ = take([*ONE_TURN[:4], retry, {**retry, "uuid": "r2"}, says(19, "m2", text("Hm.")), synthetic, failed])
    assert [span.error for span in chats(piece)] == [None, None, "rate_limit"]
    assert [call.attempts for call in calls(piece)] == [None, 3, None]
    assert calls(piece)[2].answer is None


def test_meta_rows_and_local_commands_ask_for_nothing() -> None:
    pieces, skips = take(
        [
            row("user", 0, "Caveat: the messages below were made by local commands.", isMeta=True),
            row("user", 1, "<command-name>/model</command-name>"),
            row("user", 2, "<local-command-stdout>Set model to x</local-command-stdout>"),
            row("user", 9, "Hello"),
            says(11, "m1", text("Hi")),
            row("user", 20, "<task-notification>done</task-notification>"),
            says(23, "m2", text("It is done.")),
            row("user", 40, "Are you there?"),
        ]
    )
    assert [(piece.title, len(calls(piece))) for piece in pieces] == [("Hello", 2)]
    assert not waits(pieces[0])
    assert reasons(skips) == {"a request that was never answered": 1}


def spawned(second: float, prompt: str = "Look for TODO", call: str = "s1") -> dict[str, object]:
    return says(second, f"m-{call}", use(call, "Task", subagent_type="Explore", prompt=prompt))


def agent(
    *, session: str = SESSION, name: str = "a1b2", start: float = 3, prompt: str = "Look for TODO"
) -> list[object]:
    facts = {"isSidechain": True, "agentId": name, "sessionId": session}
    return [
        row("user", start, prompt, **facts),
        {**says(start + 2, f"{name}-m", use(f"{name}-t", "Grep")), **facts},
        {**result(start + 3, f"{name}-t"), **facts},
        {**says(start + 5, f"{name}-n", text("None.")), **facts},
    ]


def parent(**more: object) -> list[dict[str, object]]:
    answered = {**result(9, "s1", "None."), **more}
    return [row("user", 0, "Search"), spawned(2), answered, says(11, "m2", text("Nothing."))]


def step(piece: Piece) -> Span:
    (found,) = agents(piece)
    return found


def assert_joined(piece: Piece) -> None:
    (task,) = [span for span in tools(piece) if span.name == "execute_tool Task"]
    inner = step(piece)
    assert (inner.name, inner.parent, at(inner, piece)) == ("invoke_agent Explore", task.id, (3, 8))
    assert [at(span, piece) for span in piece.spans if span.parent == inner.id] == [(3, 5), (5, 6), (6, 8)]
    assert {span.task for span in piece.spans} == {piece.task}


def test_a_sub_agent_is_joined_by_the_id_that_its_tools_result_names() -> None:
    (piece,), skips = take(
        agent(prompt="Something else"), parent(toolUseResult={"status": "completed", "agentId": "a1b2"})
    )
    assert_joined(piece)
    assert not skips


def test_a_sub_agent_is_joined_by_a_progress_row_and_by_the_file_beside_it() -> None:
    progress = row("progress", 4, data={"type": "agent_progress", "agentId": "a1b2"}, parentToolUseID="s1")
    (piece,), _ = take([*parent(), progress], agent(prompt="Something else"))
    assert_joined(piece)
    beside = b'{"agentType": "Explore", "description": "look", "toolUseId": "s1"}'
    (piece,), skips = read(
        ClaudeCode(),
        document(beside, f"{SESSION}/subagents/agent-a1b2.meta.json"),
        document(lines(agent(prompt="Something else")), "agent-a1b2.jsonl"),
        document(lines(parent()), "main.jsonl"),
    )
    assert_joined(piece)
    assert not skips


def test_a_sub_agent_is_joined_by_what_it_was_asked_in_the_same_file_too() -> None:
    (piece,), _ = take(parent(), agent())
    assert_joined(piece)
    nameless = [
        {key: value for key, value in msgspec.convert(one, dict[str, object]).items() if key != "agentId"}
        for one in agent()
    ]
    for before, one in pairwise(nameless):
        one["parentUuid"] = before["uuid"]
    (piece,), _ = take([*parent()[:2], *nameless, *parent()[2:]])
    assert_joined(piece)


def test_a_sub_agent_that_names_nobody_goes_to_the_one_tool_that_ran_then_and_this_is_said() -> None:
    (piece,), _ = take(parent(), agent(session="agent-a1b2", prompt="Something else"))
    assert_joined(piece)
    assert any("names no caller" in remark for remark in piece.remarks)


def test_where_two_tools_ran_a_sub_agent_that_names_nobody_stands_alone() -> None:
    two = [row("user", 0, "Search"), spawned(1, "x", "s1"), spawned(2, "y", "s2")]
    pieces, _ = take(two, agent(session="agent-a1b2", prompt="Something else"))
    assert [piece.title for piece in pieces] == ["Search", "Something else"]
    assert any("not among the files" in remark for remark in pieces[0].remarks)
    assert any("the session that it worked for" in remark for remark in pieces[1].remarks)


def test_an_agent_in_the_background_hangs_from_the_task_not_from_the_tool_that_ended_at_once() -> None:
    started = result(
        2.1, "s1", "Started.", toolUseResult={"isAsync": True, "status": "async_launched", "agentId": "a1b2"}
    )
    (piece,), _ = take([row("user", 0, "Search"), spawned(2), started, says(12, "m2", text("Found."))], agent())
    assert (step(piece).parent, at(step(piece), piece)) == (piece.spans[0].id, (3, 8))


def test_agents_of_agents_are_whole_and_ids_that_go_round_do_no_harm() -> None:
    inner = agent(name="c3", start=4, prompt="deeper")
    outer = agent(prompt="Look for TODO")
    outer[1:1] = [{**spawned(3.5, "deeper", "s2"), "isSidechain": True, "agentId": "a1b2"}]
    (piece,), _ = take(inner, outer, parent())
    assert len(agents(piece)) == 2
    outer[1] = {**spawned(3.5, "Look for TODO", "s2"), "isSidechain": True, "agentId": "a1b2"}
    pieces, _ = take(outer)
    assert [piece.title for piece in pieces] == ["Look for TODO"]


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


def test_the_output_of_stream_json_has_no_times() -> None:
    rows = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-test-1"},
        {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": None,
            "message": says(0, "m1", use("t1", "Task"))["message"],
        },
        {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": "t1",
            "message": says(0, "m2", text("Hm"))["message"],
        },
        {"type": "user", "session_id": "s", "parent_tool_use_id": None, "message": result(0, "t1")["message"]},
    ]
    (piece,), _ = take(rows)
    assert piece.timing == "none"
    assert len(calls(piece)) == 2
    assert step(piece).parent == tools(piece)[0].id


def test_a_line_that_is_cut_off_costs_that_line_only() -> None:
    data = lines(ONE_TURN)
    pieces, skips = read(ClaudeCode(), document(data[:-40]))
    assert [len(piece.spans) for piece in pieces] == [3]
    assert skips.all()[0].first == "made.json:5"


def test_a_file_in_which_nothing_was_said_is_told() -> None:
    pieces, skips = take([{"type": "summary", "summary": "Old times", "leafUuid": "x"}])
    assert not pieces
    assert reasons(skips) == {"a session's file without any message": 1}


def test_long_histories_are_left_out_of_prompts() -> None:
    many = [row("user", n / 100, f"note {n}", isMeta=True) for n in range(2001)]
    (piece,), _ = take([row("user", 0, "Begin"), *many, says(50, "m1", text("Ok"))])
    assert calls(piece)[0].prompt is None
    assert any("left out" in remark for remark in piece.remarks)


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


def test_a_type_that_is_no_word_is_not_claimed() -> None:
    assert not ClaudeCode().claims(document(lines([{**ONE_TURN[0], "type": ["user"]}])).sample())


FIXTURES = [lines(ONE_TURN), lines([*parent(), *agent()])]


def test_no_damage_raises() -> None:
    assert_unharmed(ClaudeCode, FIXTURES)


def test_no_damage_to_real_files_raises() -> None:
    assert_unharmed(ClaudeCode, [path.read_bytes() for path in sorted(real("").glob("*.json*"))], 50)
