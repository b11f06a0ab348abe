from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest
from claims import claimed, files_of
from importing import document, read, sample
from sessions import agents, assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ModelCall, Span, ToolUse
from headway.core.usage import Usage
from headway.trace.anatomy import dissect
from headway.trace.path import Phase
from headway.trace.sources.codex.rollout import Codex
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

FIVE = "rollout-2026-02-23T12-40-23-019c8a4c-ed82-79a1-aa28-7738fc5ab61a.jsonl"
PARALLEL = "rollout-2026-02-23T12-41-04-019c8a4d-8f45-7010-8b5d-7fad920aa6f9.jsonl"
LONG = "rollout-2026-02-23T12-54-34-019c8a59-e9dd-71f0-9ae3-4079fe9726a9.jsonl"
ABORTED = "rollout-2026-02-23T13-19-38-019c8a70-dda7-7f33-98ea-f30553347322.jsonl"


def line(kind: str, second: float, **payload: object) -> dict[str, object]:
    """A line of a rollout; seconds count from 10:00:00."""
    minute, rest = divmod(second, 60)
    return {"timestamp": f"2026-03-01T10:{minute:02.0f}:{rest:06.3f}Z", "type": kind, "payload": payload}


def event(second: float, kind: str, **more: object) -> dict[str, object]:
    return line("event_msg", second, type=kind, **more)


def item(second: float, kind: str, **more: object) -> dict[str, object]:
    return line("response_item", second, type=kind, **more)


def said(second: float, text: str, role: str = "assistant") -> dict[str, object]:
    return item(second, "message", role=role, content=[{"type": "output_text", "text": text}])


def use(second: float, call: str, name: str = "shell", arguments: str = "{}") -> dict[str, object]:
    return item(second, "function_call", name=name, arguments=arguments, call_id=call)


def result(second: float, call: str, text: object = "ok") -> dict[str, object]:
    return item(second, "function_call_output", call_id=call, output=text)


def counted(second: float, total: int, last: int) -> dict[str, object]:
    """A count of tokens: half of each input came from the cache."""

    def counts(tokens: int) -> dict[str, int]:
        return {
            "input_tokens": tokens,
            "cached_input_tokens": tokens // 2,
            "output_tokens": 10,
            "reasoning_output_tokens": 4,
        }

    info = {"total_token_usage": counts(total), "last_token_usage": counts(last)}
    return event(second, "token_count", info=info)


HEAD = [
    line("session_meta", 0, id="s-1", model_provider="openai"),
    line("turn_context", 0, model="gpt-test"),
    said(0, "<environment_context>here</environment_context>", "user"),
]
TURN = [
    event(1, "task_started", turn_id="t-1"),
    said(1, "List the files", "user"),
    event(1, "user_message", message="List the files"),
    event(2, "token_count", info=None),
    item(3, "reasoning"),
    event(4, "agent_message", message="I look."),
    said(4, "I look."),
    use(4.5, "c-1", arguments='{"command": "ls"}'),
    counted(5, 100, 100),
    result(7, "c-1", "Exit code: 0\na.txt"),
    counted(7.5, 100, 100),
    event(9, "agent_message", message="One file."),
    said(9, "One file."),
    counted(9.1, 250, 150),
    event(9.2, "task_complete", turn_id="t-1"),
]


def take(*files: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(Codex(), *[document(lines(rows), f"{number}.jsonl") for number, rows in enumerate(files)])


def real(name: str) -> Path:
    return sample(f"traces/codex_rollout/{name}")


def imported(*names: str) -> tuple[list[Piece], Skips]:
    return read(Codex(), *[document(real(name).read_bytes(), name) for name in names])


def total(piece: Piece) -> tuple[int, int, int, int]:
    """Input, cached, output and reasoning tokens of all calls whose tokens are known."""
    usages = [call.usage for call in calls(piece)]
    return (
        sum(usage.input_tokens or 0 for usage in usages),
        sum(usage.cache_read or 0 for usage in usages),
        sum(usage.output_tokens or 0 for usage in usages),
        sum(usage.reasoning or 0 for usage in usages),
    )


def length(piece: Piece) -> float | None:
    return at(piece.spans[0], piece)[1]


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
        ('{"output": "bad", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}', True),
        ({"content": "good", "success": True}, False),
        ([{"type": "input_text", "text": "who knows"}], None),
    ]
    rows = [use(4, f"c-{n}") for n in range(4)]
    rows += [result(6, f"c-{n}", text) for n, (text, _) in enumerate(outputs)]
    (piece,), _ = take([*HEAD, *TURN[:4], *rows])
    works = [tool.work for tool in tools(piece) if isinstance(tool.work, ToolUse)]
    assert [work.failed for work in works] == [failed for _, failed in outputs]
    assert [tool.error for tool in tools(piece)] == ["tool_error", "tool_error", None, None]
    assert [work.result for work in works[1:]] == [part("tool", text) for text in ("bad", "good", "who knows")]


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
    done["payload"] = {"started_at_ms": start, "completed_at_ms": start + 1000, **dict(done["payload"])}  # type: ignore[call-overload]
    (piece,), _ = take([*HEAD, *TURN[:10], done])
    assert at(tools(piece)[0], piece) == (4, 5)


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


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(Codex()) == files_of("codex_rollout") | {"tracelab/codex_trace.json"}


def test_five_turns_with_people_between() -> None:
    pieces, skips = imported(FIVE)
    assert not skips
    assert [length(piece) for piece in pieces] == [195.247, 132.108, 297.973, 171.45, 107.364]
    assert [len(calls(piece)) for piece in pieces] == [21, 10, 28, 17, 5]
    assert [len(tools(piece)) for piece in pieces] == [28, 16, 35, 20, 6]  # one search of the provider's in the first
    assert [total(piece) for piece in pieces] == [
        (673392, 600576, 6682, 2901),
        (605183, 547584, 6913, 4175),
        (2663685, 2600960, 14143, 7504),
        (2466474, 2320512, 6295, 2194),
        (795291, 766720, 2042, 1122),
    ]
    first = calls(pieces[0])[0]
    assert first.usage == Usage(input_tokens=17203, output_tokens=358, cache_read=3456, reasoning=193)
    assert [at(span, pieces[0]) for span in chats(pieces[0])[:2]] == [(0, 12.818), (13.067, 18.348)]
    waited = [round((wait.end or 0) - wait.start, 3) for piece in pieces for wait in waits(piece)]
    assert waited == [192.955, 71.996, 2695.554, 39.436]


def test_tools_in_parallel_leave_every_call_on_the_path() -> None:
    (piece,), _ = imported(PARALLEL)
    assert (length(piece), len(calls(piece)), len(tools(piece))) == (311.377, 28, 118)
    assert total(piece) == (1751428, 1651968, 14600, 4293)
    assert dissect(piece.spans).n == 28
    assert round((calls(piece)[0].first_visible or 0) - piece.spans[0].start, 3) == 6.644


def test_a_day_long_session() -> None:
    pieces, skips = imported(LONG)
    assert not skips
    assert len(pieces) == 33
    assert [piece.timing for piece in pieces] == ["messages"] * 33
    counts = [len([call for call in calls(piece) if call.usage.input_tokens]) for piece in pieces]
    assert counts[:10] == [10, 1, 1, 5, 4, 5, 1, 4, 7, 67]
    assert sum(counts) == 286
    assert sum(len(calls(piece)) for piece in pieces) == 287  # one for the compaction
    assert sum(tool.name == "execute_tool web_search" for piece in pieces for tool in tools(piece)) == 7
    assert sum(len(tools(piece)) for piece in pieces) == 365 + 7
    (compacted,) = [piece for piece in pieces if any("compacted" in remark for remark in piece.remarks)]
    lost = next(
        chat for chat in chats(compacted) if isinstance(chat.work, ModelCall) and not chat.work.usage.input_tokens
    )
    assert round((lost.end or 0) - lost.start, 3) == 49.779  # 09:50:59.099 to 09:51:48.878
    assert (length(pieces[9]), total(pieces[9])) == (979.514, (7529865, 7408896, 18861, 6414))


def test_a_session_that_broke_off() -> None:
    (piece,), _ = imported(ABORTED)
    assert (length(piece), total(piece)) == (10.127, (34469, 3456, 431, 264))
    (tool,) = tools(piece)
    assert (tool.name, at(tool, piece)) == ("execute_tool exec_command", (10.127, None))


def q(values: list[float], share: float) -> float:
    """A quantile by linear interpolation."""
    ordered = sorted(values)
    rank = share * (len(ordered) - 1)
    low, high = ordered[int(rank)], ordered[min(int(rank) + 1, len(ordered) - 1)]
    return low + (high - low) * (rank - int(rank))


def test_where_the_time_of_forty_real_turns_went() -> None:
    pieces, _ = imported(FIVE, PARALLEL, LONG, ABORTED)
    seconds = [length(piece) or 0.0 for piece in pieces]
    assert (len(pieces), round(sum(seconds) / 60, 1)) == (40, 359.4)
    counts = [float(len([call for call in calls(piece) if call.usage.input_tokens])) for piece in pieces]
    assert (median(counts), max(counts)) == (5.5, 67)
    assert round(q(counts, 0.95)) == 28
    visible = [
        min(call.first_visible for call in calls(piece) if call.first_visible) - piece.spans[0].start
        for piece in pieces
    ]
    assert (round(q(visible, 0.5), 1), round(q(visible, 0.95), 1)) == (20.5, 63.9)
    spent = [dissect(piece.spans).phases for piece in pieces]
    on_path = {phase: sum(one.get(phase, 0.0) for one in spent) / sum(seconds) for phase in Phase}
    # From the last input of each call to its count of tokens, by hand: 29.8 % (searches of the provider's included).
    assert on_path[Phase.MODEL] + on_path[Phase.TOOL] == pytest.approx(1.0, abs=0.005)
    assert on_path[Phase.MODEL] == pytest.approx(0.298, abs=0.01)
    naive = sum(ends(tool) for piece in pieces for tool in tools(piece)) / sum(seconds)
    assert naive == pytest.approx(0.88, abs=0.01)
    assert naive > on_path[Phase.TOOL] + 0.15


def ends(span: Span) -> float:
    return 0.0 if span.end is None else span.end - span.start


def test_separated_records_as_tracelab_publishes_them() -> None:
    pieces, skips = read(Codex(), document(sample("traces/tracelab/codex_trace.json").read_bytes()))
    assert not skips
    assert [length(piece) for piece in pieces] == [24.047, 7.153, 5.164]
    assert [len(calls(piece)) for piece in pieces] == [5, 2, 2]
    assert [tool.error for tool in tools(pieces[0])] == [None, "tool_error", None, None, None, None, None]
    assert total(pieces[0]) == (9324 + 9917 + 10058 + 10152 + 10472, 6912 + 9600 + 9856 + 3456 + 10240, 1124, 347)


def test_legacy_counts_by_turn() -> None:
    pieces, skips = imported("codex_050_legacy.jsonl", "codex_051_usage.jsonl")
    assert not skips
    assert [piece.timing for piece in pieces] == ["none"] * 4
    assert [call.usage for piece in pieces for call in calls(piece)] == [
        Usage(input_tokens=1420, output_tokens=910),
        Usage(),
        Usage(input_tokens=1420, output_tokens=910, cache_read=380),
        Usage(input_tokens=1420, output_tokens=610, cache_read=1040),  # the sum so far, less that of the turn before
    ]
    assert all("by turns, not by calls" in "".join(piece.remarks) for piece in pieces)


def test_counts_without_messages() -> None:
    (piece,), _ = imported("ccusage_codex_alpha.jsonl")
    assert piece.timing == "none"
    assert [(call.model, call.usage) for call in calls(piece)] == [
        ("gpt-5.2-codex", Usage(input_tokens=1000, output_tokens=125, cache_read=250, reasoning=75)),
        ("gpt-5.3-codex", Usage(input_tokens=2500, output_tokens=300, cache_read=500, reasoning=200)),
    ]


def test_messages_without_frames() -> None:
    pieces, skips = imported("agent-sessions_codex_large.jsonl")
    assert not skips
    assert [piece.title for piece in pieces] == ["Start", "Step 1", "Step 2", "Step 3", "Step 4", "Step 5"]
    first = pieces[0]
    assert [at(span, first) for span in first.spans[1:]] == [(0, 2.8), (2.8, 3.8), (3.8, 4.8)]
    assert calls(first)[0].usage == Usage(input_tokens=12091, output_tokens=182, cache_read=10880, reasoning=128)
    assert calls(first)[1].usage == Usage()


def test_schema_drift() -> None:
    (piece,), skips = imported("agent-sessions_codex_schema_drift.jsonl")
    assert not skips
    assert (piece.title, [span.name for span in piece.spans[1:]]) == (
        "Translate 'hello' to Spanish",
        ["chat unknown", "execute_tool translate", "chat unknown"],
    )
    assert [at(span, piece) for span in piece.spans[1:]] == [(0, 1), (1, 1), (1, 2)]


def test_a_file_whose_times_were_trimmed() -> None:
    pieces, skips = imported("agent-sessions_codex_small.jsonl")
    assert reasons(skips) == {"a line that is not JSON, or not a line of a rollout": 92}
    first = pieces[0]
    assert (first.title, first.spans[0].error) == ("List the files", "interrupted")
    assert {tool.name.split()[1] for tool in tools(first)} == {
        "shell",
        "tool_search",
        "web_search",
        "example_tool",
        "apply_patch",
    }
    (counted_call,) = [call for call in calls(first) if call.usage.input_tokens]
    assert counted_call.usage == Usage(
        input_tokens=16341, output_tokens=81, cache_read=3584, cache_write=0, reasoning=63
    )


def test_no_damage_raises() -> None:
    assert_unharmed(Codex, [lines([*HEAD, *TURN])])


def test_no_damage_to_real_files_raises() -> None:
    files = [path for path in sorted(real("").glob("*.jsonl")) if path.stat().st_size < 200_000]
    files.append(sample("traces/tracelab/codex_trace.json"))
    assert_unharmed(Codex, [path.read_bytes() for path in files], 40)
