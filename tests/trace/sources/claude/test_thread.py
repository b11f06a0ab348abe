"""A conversation becomes calls, tools and waits, each with its times."""

import msgspec
from claude_rows import ONE_TURN, SESSION, result, row, says, take, text, use
from sessions import at, calls, chats, reasons, tools, waits

from headway.core.span import ModelCall, ToolUse
from headway.core.usage import Usage
from headway.trace.sources.digests import part


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
    assert calls(piece) == [
        ModelCall(
            model="unknown",
            visible_by=piece.spans[-1].end,
            prompt=(part("user", "Hello"),),
            answer=part("assistant", "Hi"),
        )
    ]
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


def test_long_histories_are_left_out_of_prompts() -> None:
    many = [row("user", n / 100, f"note {n}", isMeta=True) for n in range(2001)]
    (piece,), _ = take([row("user", 0, "Begin"), *many, says(50, "m1", text("Ok"))])
    assert calls(piece)[0].prompt is None
    assert any("left out" in remark for remark in piece.remarks)
