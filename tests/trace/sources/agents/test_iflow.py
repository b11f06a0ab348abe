from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, at, calls, lines, reasons, tools

from headway.core.usage import Usage
from headway.trace.sources.agents.iflow import IFlow
from headway.trace.sources.digests import part

REAL = "agentsview_session-5de701fc-7454-4858-a249-95cac4fd3b51.jsonl"


def row(kind: str, second: float, *said: object) -> dict[str, object]:
    zero = {"input_tokens": 0, "output_tokens": 0}
    more = {"model": "m", "id": f"response-{second}", "usage": zero} if kind == "assistant" else {}
    return {
        "type": kind,
        "uuid": f"{kind}-{second}-{len(said)}",
        "sessionId": "session-5de701fc-0000",
        "timestamp": f"2026-03-01T10:00:{second:06.3f}Z",
        "message": {"role": kind, "content": list(said), **more},
    }


def use(call: str) -> dict[str, object]:
    return {"type": "tool_use", "id": call, "name": "read", "input": {}}


def result(call: str, **response: object) -> dict[str, object]:
    parts = {"functionResponse": {"id": call, "name": "read", "response": response}}
    return {"type": "tool_result", "tool_use_id": call, "content": {"callId": call, "responseParts": parts}}


ROWS = [
    row("user", 0, {"type": "text", "text": "Read both"}),
    row("assistant", 3, {"type": "text", "text": "I read."}, use("a")),
    row("assistant", 3.1, use("a"), use("b")),
    row("user", 4, result("a", output="one")),
    row("user", 5, result("b", error="no such file")),
    row("assistant", 8, {"type": "text", "text": "Done."}),
]


def test_rows_that_repeat_blocks_are_one_answer_and_its_zero_tokens_are_unknown() -> None:
    (piece,), skips = read(IFlow(), document(lines(ROWS)))
    assert not skips
    assert [(span.name, at(span, piece)) for span in piece.spans] == [
        ("invoke_agent iflow", (0, 8)),
        ("chat m", (0, 3.1)),
        ("execute_tool read", (3.1, 4)),
        ("execute_tool read", (3.1, 5)),
        ("chat m", (5, 8)),
    ]
    assert [call.usage for call in calls(piece)] == [Usage(), Usage()]
    assert [tool.error for tool in tools(piece)] == [None, "tool_error"]
    assert (calls(piece)[1].prompt or ())[2:] == (part("tool", "one"), part("tool", "no such file"))
    assert any("which are unknown" in remark for remark in piece.remarks)


def test_broken_rows_are_counted() -> None:
    _, skips = read(IFlow(), document(lines(ROWS) + b'{"type": "user"\n'))
    assert reasons(skips) == {"a line that is not JSON, or not a row of a session": 1}


def test_it_claims_its_own_file_and_no_others() -> None:
    assert claimed(IFlow()) == {f"other_agents/{REAL}"}


def test_a_real_session() -> None:
    (piece,), skips = read(IFlow(), document(sample(f"traces/other_agents/{REAL}").read_bytes()))
    assert not skips
    assert at(piece.spans[0], piece) == (0, 28.998)
    assert len(calls(piece)) == 4
    assert [(tool.name, at(tool, piece)) for tool in tools(piece)] == [
        ("execute_tool read_file", (17.685, 17.906)),
        ("execute_tool read_file", (17.685, 17.927)),
        ("execute_tool read_file", (17.685, 17.93)),
        ("execute_tool read_file", (19.918, 20.051)),
        ("execute_tool read_file", (19.918, 20.078)),
        ("execute_tool replace", (27.181, 27.25)),
    ]


def test_no_damage_raises() -> None:
    assert_unharmed(IFlow, [lines(ROWS)])


def test_no_damage_to_the_real_file_raises() -> None:
    assert_unharmed(IFlow, [sample(f"traces/other_agents/{REAL}").read_bytes()], 40)
