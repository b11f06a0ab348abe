"""Files of sessions become tasks: each row counts once, and none does harm."""

from claude_rows import ONE_TURN, agent, parent, result, row, says, step, take, text, use
from importing import document, read
from sessions import assert_unharmed, calls, lines, reasons, tools

from headway.app.report.headline import headline
from headway.trace.account import account_of
from headway.trace.anatomy import dissect
from headway.trace.sources.claude.session import ClaudeCode
from headway.trace.sources.verdict import judge


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


def test_a_type_that_is_no_word_is_not_claimed() -> None:
    assert not ClaudeCode().claims(document(lines([{**ONE_TURN[0], "type": ["user"]}])).sample())


FIXTURES = [lines(ONE_TURN), lines([*parent(), *agent()])]


def test_no_damage_raises() -> None:
    assert_unharmed(ClaudeCode, FIXTURES)


def test_the_first_block_of_text_bounds_when_the_user_saw_it() -> None:
    thought = says(1, "m1", {"type": "thinking", "thinking": "hm"})
    (piece,), _ = take([ONE_TURN[0], thought, *ONE_TURN[1:]])
    account = account_of(piece.spans, judge(piece.spans, "any", piece.timing))
    assert (account.anatomy.task_ttft, account.anatomy.task_ttft_most) == (None, 2)
    assert "the user saw the first output after ≤ 2.000 s" in headline(account)


def test_where_no_text_was_written_nothing_bounds_it() -> None:
    (piece,), _ = take([*ONE_TURN[:1], *ONE_TURN[2:4]])
    assert dissect(piece.spans).task_ttft_most is None
