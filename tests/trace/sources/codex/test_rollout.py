"""A rollout becomes tasks: calls, tools and waits, each with its times."""

import pytest
from codex_lines import HEAD, TURN, counted, event, item, length, line, result, said, take, use
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ModelCall, ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.path import Phase
from headway.trace.sources.codex.rollout import Codex
from headway.trace.sources.digests import part
from headway.trace.sources.verdict import judge


def test_a_turn_is_a_task_and_a_call_runs_until_its_tokens_are_counted() -> None:
    (piece,), skips = take([*HEAD, *TURN])
    root, first, tool, second = piece.spans
    assert not skips
    assert (piece.timing, piece.title, root.name, root.session) == (
        "messages",
        "List the files",
        "invoke_agent codex",
        "s-1",
    )
    assert [span.name for span in piece.spans[1:]] == ["chat gpt-test", "execute_tool shell", "chat gpt-test"]
    assert [at(span, piece) for span in piece.spans] == [(0, 8.2), (0, 4), (4, 6), (6, 8.1)]
    assert isinstance(first.work, ModelCall)
    assert isinstance(second.work, ModelCall)
    looking = part("assistant", 'I look.\nshell({"command": "ls"})')
    context, asked = part("user", "<environment_context>here</environment_context>"), part("user", "List the files")
    assert (first.work.prompt, first.work.answer, first.work.provider) == ((context, asked), looking, "openai")
    assert second.work.prompt == (context, asked, looking, part("tool", "Exit code: 0\na.txt"))
    assert isinstance(tool.work, ToolUse)
    assert (tool.work.issued_by, tool.work.failed, tool.work.inferred) == (first.id, False, True)


def test_counts_that_only_repeat_are_not_counted_and_cached_tokens_are_part_of_the_input() -> None:
    (piece,), _ = take([*HEAD, *TURN])
    assert [call.usage for call in calls(piece)] == [
        Usage(input_tokens=100, output_tokens=10, cache_read=50, reasoning=4),
        Usage(input_tokens=150, output_tokens=10, cache_read=75, reasoning=4),
    ]


def test_the_first_visible_text_is_a_message_and_no_first_token_is_made_up() -> None:
    (piece,), _ = take([*HEAD, *TURN])
    start = piece.spans[0].start
    assert [round((call.first_visible or 0) - start, 3) for call in calls(piece)] == [3, 8]
    assert [call.first_token for call in calls(piece)] == [None, None]
    assert any("First visible text" in remark for remark in piece.remarks)


def test_newer_versions_say_when_the_first_token_of_a_turn_came() -> None:
    rows = [*TURN[:-1], event(9.2, "task_complete", turn_id="t-1", time_to_first_token_ms=1500)]
    (piece,), _ = take([*HEAD, *rows])
    assert [call.first_token for call in calls(piece)] == [piece.spans[0].start + 1.5, None]


def test_a_message_while_the_turn_runs_belongs_to_it_and_a_person_is_waited_for_between_turns() -> None:
    steered = [*TURN[:10], event(7.2, "user_message", message="And the sizes"), *TURN[10:]]
    again = [event(60, "task_started", turn_id="t-2"), event(60, "user_message", message="More"), said(62, "None.")]
    pieces, _ = take([*HEAD, *steered, *again])
    assert [piece.title for piece in pieces] == ["List the files", "More"]
    assert at(chats(pieces[0])[1], pieces[0]) == (6.2, 8.1)
    (wait,) = waits(pieces[1])
    assert (at(wait, pieces[1]), wait.parent) == ((-50.8, 0), None)


def test_tools_at_once_all_count_from_the_end_of_the_answer_that_asked_for_them() -> None:
    rows = [*TURN[:8], use(4.9, "c-2"), TURN[8], result(6, "c-2"), *TURN[9:]]
    (piece,), _ = take([*HEAD, *rows])
    assert [at(tool, piece) for tool in tools(piece)] == [(4, 6), (4, 5)]
    assert any("Some tools were asked for while" in remark for remark in piece.remarks)
    anatomy = dissect(piece.spans)
    assert (anatomy.n, anatomy.phases.get(Phase.TOOL)) == (2, pytest.approx(2.0))


def test_how_a_tool_ended_is_read_from_what_it_gave_back() -> None:
    outputs: list[tuple[object, bool | None]] = [
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:", True),
        ({"stdout": "", "exitCode": 2}, True),
        ({"stdout": "a", "exitCode": 0}, False),
        ('{"output": "bad", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}', True),
        ({"content": "good", "success": True}, False),
        ([{"type": "input_text", "text": "who knows"}], None),
    ]
    rows = [use(4, f"c-{n}") for n in range(len(outputs))]
    rows += [result(6, f"c-{n}", text) for n, (text, _) in enumerate(outputs)]
    (piece,), _ = take([*HEAD, *TURN[:4], *rows])
    works = [tool.work for tool in tools(piece) if isinstance(tool.work, ToolUse)]
    assert [work.failed for work in works] == [failed for _, failed in outputs]
    assert [tool.error for tool in tools(piece)] == ["tool_error", "tool_error", None, "tool_error", None, None]
    assert [work.result for work in works[3:]] == [part("tool", text) for text in ("bad", "good", "who knows")]


def test_times_that_tools_took_themselves_count_for_more_than_messages() -> None:
    rows = [
        *TURN[:9],
        event(6.9, "exec_command_end", call_id="c-1", exit_code=1, duration={"secs": 1, "nanos": 500_000_000}),
        result(7, "c-1"),
        event(
            8, "mcp_tool_call_end", call_id="m", duration={"secs": 0, "nanos": 250_000_000}, invocation={"tool": "find"}
        ),
    ]
    (piece,), _ = take([*HEAD, *rows])
    assert [(tool.name, at(tool, piece)) for tool in tools(piece)] == [
        ("execute_tool shell", (4.4, 5.9)),
        ("execute_tool find", (6.75, 7)),
    ]
    assert [tool.work.inferred for tool in tools(piece) if isinstance(tool.work, ToolUse)] == [False, False]
    assert tools(piece)[0].error == "tool_error"
    done = line("event_msg", 8, type="item_completed", item={"type": "CommandExecution", "id": "c-1"})
    start = 1_772_359_205_000  # 2026-03-01T10:00:05Z
    done["payload"] = {"started_at_ms": start, "completed_at_ms": start + 1000, **dict(done["payload"])}  # type: ignore[call-overload] - JSON
    (piece,), _ = take([*HEAD, *TURN[:10], done])
    assert at(tools(piece)[0], piece) == (4, 5)


def test_where_all_lines_carry_one_time_the_durations_that_the_record_tells_are_all_that_is_known() -> None:
    rows = [
        event(1, "task_started", turn_id="t-1"),
        event(1, "user_message", message="List the files"),
        item(1, "reasoning"),
        use(1, "c-1"),
        use(1, "c-2", "find"),
        counted(1, 100, 100),
        event(1, "mcp_tool_call_end", call_id="c-2", duration={"secs": 0, "nanos": 250_000_000}),
        result(1, "c-1"),
        result(1, "c-2"),
        said(1, "One file."),
        event(1, "agent_message", message="One file."),
        counted(1, 250, 150),
        event(1, "task_complete", turn_id="t-1", duration_ms=1200, time_to_first_token_ms=300),
    ]
    (piece,), skips = take([*HEAD, *rows])
    assert not skips
    assert (piece.timing, piece.extent) == ("durations", 1.2)
    assert [(span.name, at(span, piece)) for span in piece.spans] == [
        ("invoke_agent codex", (0, 1.2)),
        ("chat gpt-test", (0, None)),
        ("execute_tool shell", (0, None)),
        ("execute_tool find", (0, 0.25)),
        ("chat gpt-test", (0.25, None)),
    ]
    assert [(call.first_token, call.first_visible) for call in calls(piece)] == [(0.3, None), (None, None)]
    assert [isinstance(tool.work, ToolUse) and tool.work.inferred for tool in tools(piece)] == [True, False]
    assert piece.remarks[-1] == "The turn says that it took 1.200 s and had its first token after 0.300 s."
    verdict = judge(piece.spans, "Codex session", piece.timing, piece.remarks, extent=piece.extent)
    assert (verdict.timed, verdict.timing, verdict.extent) == (False, "durations", 1.2)
    assert (verdict.about("ttft").known, verdict.about("tools").known) == (1, 1)
    assert not [note for note in dissect(piece.spans, timed=False).unknowns if "never ended" in note]


def test_where_a_turn_tells_no_duration_either_nothing_is_known() -> None:
    rows = [{**row, "timestamp": TURN[0]["timestamp"]} for row in TURN]
    (piece,), _ = take([*HEAD, *rows])
    assert piece.timing == "messages"  # as it was written down; whoever judges it sees that no call took any time
    assert judge(piece.spans, "Codex session", piece.timing).timing == "none"


def test_a_count_whose_sum_is_damaged_is_no_new_count_where_all_else_repeats() -> None:
    again = counted(7.5, 100, 100)
    again["payload"]["info"]["total_token_usage"]["input_tokens"] = "n/a"  # type: ignore[index] - of our own making
    (piece,), skips = take([*HEAD, *TURN[:10], again, *TURN[11:]])
    assert reasons(skips) == {"a field of the wrong type, left out: payload.info.total_token_usage.input_tokens": 1}
    assert [call.usage.input_tokens for call in calls(piece)] == [100, 150]


def test_a_search_by_the_provider_lies_inside_the_call() -> None:
    (piece,), _ = take([*HEAD, *TURN[:5], item(4, "web_search_call", status="completed"), said(5, "Found.")])
    (search,) = tools(piece)
    assert (search.name, search.parent, at(search, piece)) == ("execute_tool web_search", chats(piece)[0].id, (2, 3))
    assert at(chats(piece)[0], piece) == (0, 4)


def test_an_aborted_turn_is_interrupted_with_all_that_was_at_work() -> None:
    (piece,), _ = take([*HEAD, *TURN[:9], event(20, "turn_aborted", turn_id="t-1", reason="interrupted")])
    assert (length(piece), piece.spans[0].error) == (19, "interrupted")
    assert [(at(tool, piece), tool.error) for tool in tools(piece)] == [((4, 19), "interrupted")]


def test_compaction_begins_a_new_history_and_its_call_is_told_but_not_counted() -> None:
    kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A summary"}]}]
    compacted = line("compacted", 20, message="", replacement_history=kept)
    rows = [*TURN[:10], compacted, said(23, "One file."), counted(23, 300, 200)]
    (piece,), _ = take([*HEAD, *rows])
    assert [at(chat, piece) for chat in chats(piece)] == [(0, 4), (6, 19), (19, 22)]
    assert calls(piece)[1] == ModelCall(model="gpt-test")
    assert calls(piece)[2].prompt == (part("user", "A summary"),)
    assert any("compacted" in remark for remark in piece.remarks)


def test_streams_that_broke_off_are_attempts_and_an_error_is_the_turns() -> None:
    rows = [*TURN[:3], event(2, "stream_error", message="again"), *TURN[4:9]]
    rows.append(event(10, "error", message="no", codex_error_info="usage_limit_exceeded"))
    (piece,), _ = take([*HEAD, *rows])
    assert calls(piece)[0].attempts == 2
    assert piece.spans[0].error == "usage_limit_exceeded"


def test_a_question_to_the_user_is_the_users_time() -> None:
    rows = [*TURN[:4], use(4, "c-1", "request_user_input"), counted(4, 100, 100), result(34, "c-1", "Yes")]
    (piece,), _ = take([*HEAD, *rows])
    (question,), (wait,) = tools(piece), waits(piece)
    assert (wait.parent, at(wait, piece)) == (question.id, (3, 33))


def test_a_sub_agents_rollout_stands_in_the_turn_that_started_it_or_alone() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s-1", "depth": 1, "agent_role": "worker"}}}
    inner = [
        line("session_meta", 5, id="s-2", source=source),
        event(5.5, "task_started", turn_id="u-1"),
        event(5.5, "user_message", message="Do a part"),
        said(6.5, "Done."),
        event(6.6, "task_complete", turn_id="u-1"),
    ]
    (piece,), _ = take(inner, [*HEAD, *TURN])
    (agent,) = agents(piece)
    assert (agent.name, agent.parent, at(agent, piece)) == ("invoke_agent worker", piece.spans[0].id, (4.5, 5.6))
    (alone,), _ = take(inner)
    assert any("not among the files" in remark for remark in alone.remarks)


def test_a_turn_that_two_files_hold_counts_once() -> None:
    pieces, skips = take([*HEAD, *TURN], [*HEAD, *TURN])
    assert len(pieces) == 1
    assert reasons(skips) == {"a turn that another file of the same session holds too: counted once": 1}


def test_kinds_that_nobody_knows_are_counted_and_known_ones_without_meaning_are_not() -> None:
    rows = [event(2, "plan_update"), event(2, "telepathy"), item(2, "smell"), line("dream", 2), line("world_state", 2)]
    (piece,), skips = take([*HEAD, *TURN[:3], *rows, *TURN[3:]])
    assert len(piece.spans) == 4
    assert reasons(skips) == {
        "an event of unknown type: telepathy": 1,
        "an item of unknown type: smell": 1,
        "a line of unknown type: dream": 1,
    }


def test_the_oldest_format_has_items_without_an_envelope_and_no_times() -> None:
    rows = [
        {"id": "s-0", "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
    ]
    (piece,), skips = take(rows)
    assert not skips
    assert (piece.timing, piece.title, len(calls(piece)), len(tools(piece))) == ("none", "Hello", 2, 1)


def test_no_damage_raises() -> None:
    assert_unharmed(Codex, [lines([*HEAD, *TURN])])
