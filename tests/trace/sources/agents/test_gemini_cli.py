from collections.abc import Sequence

from claims import claimed, files_of
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, chats, lines, reasons, tools, waits

from headway.core.span import ToolUse
from headway.core.usage import Usage
from headway.trace.sources.agents.gemini_cli import GeminiCli
from headway.trace.sources.digests import part
from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece

HEAD: dict[str, object] = {"sessionId": "s-1", "projectHash": "h", "startTime": "2026-03-01T10:00:00Z", "kind": "main"}


def message(second: int, kind: str, content: object = "", **more: object) -> dict[str, object]:
    return {
        "id": f"m{second}",
        "timestamp": f"2026-03-01T10:00:{second:02}.000Z",
        "type": kind,
        "content": content,
        **more,
    }


def tool(name: str, status: str, second: int | None, output: str | None = "done") -> dict[str, object]:
    made: dict[str, object] = {"id": f"{name}-1", "name": name, "args": {"x": 1}, "status": status}
    if output is not None:
        made["result"] = [{"functionResponse": {"id": f"{name}-1", "name": name, "response": {"output": output}}}]
    if second is not None:
        made["timestamp"] = f"2026-03-01T10:00:{second:02}.000Z"
    return made


TOKENS = {"input": 100, "output": 10, "cached": 60, "thoughts": 5, "tool": 7, "total": 122}
ROWS: list[dict[str, object]] = [
    HEAD,
    message(1, "user", [{"text": "List the files"}]),
    {"$set": {"lastUpdated": "2026-03-01T10:00:01Z"}},
    message(3, "gemini", "I look.", tokens=TOKENS),
    message(3, "gemini", "I look.", model="gemini-test", toolCalls=[tool("ls", "success", 5)], tokens=TOKENS),
    message(9, "gemini", "One file."),
]


def take(rows: Sequence[object]) -> tuple[list[Piece], Skips]:
    return read(GeminiCli(), document(lines(rows)))


def imported(name: str) -> tuple[list[Piece], Skips]:
    return read(GeminiCli(), document(sample(f"traces/gemini_cli/{name}").read_bytes()))


def test_thoughts_are_output_and_what_its_own_tools_read_is_input() -> None:
    (piece,), skips = take(ROWS)
    assert not skips
    assert [call.usage for call in calls(piece)] == [
        Usage(input_tokens=107, output_tokens=15, cache_read=60, reasoning=5),
        Usage(),
    ]
    assert any("Thoughts were added" in remark for remark in piece.remarks)


def test_a_message_that_was_written_anew_replaces_the_one_before() -> None:
    (piece,), _ = take(ROWS)
    assert [span.name for span in piece.spans] == [
        "invoke_agent gemini-cli",
        "chat gemini-test",
        "execute_tool ls",
        "chat unknown",
    ]
    assert [at(span, piece) for span in piece.spans] == [(0, 8), (0, 2), (2, 4), (4, 8)]
    assert calls(piece)[1].prompt == (
        part("user", "List the files"),
        part("assistant", 'I look.\nls({"x":1})'),
        part("tool", "done"),
    )


def test_how_tools_ended() -> None:
    asked = [
        tool("a", "success", 4, "Exit Code: 3\n"),
        tool("b", "error", 4, "no"),
        tool("c", "cancelled", 4, None),
        tool("d", "executing", None, None),
    ]
    (piece,), _ = take([HEAD, message(1, "user", "Go"), message(3, "gemini", "", toolCalls=asked)])
    assert [(use.error, use.work.failed) for use in tools(piece) if isinstance(use.work, ToolUse)] == [
        ("tool_error", True),
        ("tool_error", True),
        ("cancelled", None),
        (None, None),
    ]
    assert at(tools(piece)[3], piece) == (2, None)


def test_broken_messages_cost_themselves_only() -> None:
    data = lines([*ROWS[:3], {"id": "x", "timestamp": "yesterday", "type": "gemini"}, *ROWS[3:]]) + b'{"id": "y"'
    (piece,), skips = read(GeminiCli(), document(data))
    assert [at(chat, piece)[1] is None for chat in chats(piece)] == [True, False, False]
    assert reasons(skips) == {
        "a field of the wrong type, left out: timestamp": 1,
        "a line that is not JSON, or not part of a session": 1,
    }


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(GeminiCli()) == files_of("gemini_cli")


def test_lines_since_version_0_40() -> None:
    (piece,), skips = imported("agent-sessions_gemini_jsonl_v040.jsonl")
    assert not skips
    assert (piece.title, piece.spans[0].session) == ("Say hello and list files.", "gemini_stage0_jsonl")
    assert [at(span, piece) for span in piece.spans[1:]] == [(0, 1.97), (1.97, 2.209), (2.209, 12.841)]
    assert [call.usage for call in calls(piece)] == [
        Usage(input_tokens=11855, output_tokens=81, cache_read=0, reasoning=0),
        Usage(input_tokens=12069, output_tokens=147, cache_read=11502, reasoning=0),
    ]


def test_one_object_with_a_request_that_was_cancelled() -> None:
    pieces, skips = imported("agent-sessions_gemini_large.json")
    assert not skips
    assert [(piece.title, piece.spans[0].error, len(calls(piece))) for piece in pieces] == [
        ("Run a command", "interrupted", 3),
        ("Step 1", None, 1),
    ]
    assert [(at(use, pieces[0]), use.error) for use in tools(pieces[0])] == [((1, 2), None), ((2.5, 2.6), "tool_error")]
    assert [at(wait, pieces[1]) for wait in waits(pieces[1])] == [(-1, 0)]


def test_tools_whose_end_is_not_recorded() -> None:
    (piece,), skips = imported("agentsview_tool_calls_with_results.json")
    assert not skips
    assert [(use.name, at(use, piece)) for use in tools(piece)] == [
        ("execute_tool read_file", (5, None)),
        ("execute_tool run_command", (5, None)),
    ]
    assert any("When some tools ended" in remark for remark in piece.remarks)


def test_no_damage_raises() -> None:
    assert_unharmed(GeminiCli, [lines(ROWS)])


def test_no_damage_to_real_files_raises() -> None:
    assert_unharmed(GeminiCli, [path.read_bytes() for path in sorted(sample("traces/gemini_cli").glob("*.json*"))], 50)
