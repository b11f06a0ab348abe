"""Expected values are counted by hand in the messages."""

import json

from claims import calls_of, claimed, extent, files_of, length, tools_of
from hypothesis import given, settings
from hypothesis import strategies as st
from importing import damaged, document, read, sample

from headway.trace.sources.skips import Skips
from headway.trace.sources.source import Piece
from headway.trace.sources.swe_agent.mini import MiniSweAgent

T = 1_767_607_200


def _answer(second: float, created: int, call: str, command: str, **usage: int) -> dict[str, object]:
    response: dict[str, object] = {
        "id": f"r{second}",
        "created": T + created,
        "model": "deepseek-chat",
        "usage": {"prompt_tokens": 100, "completion_tokens": 9} | usage,
        "choices": [],
    }
    made = {"id": call, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
    extra: dict[str, object] = {
        "actions": [{"command": command, "tool_call_id": call}],
        "response": response,
        "cost": 0.0004,
        "timestamp": T + second,
    }
    return {"role": "assistant", "content": "I look.", "tool_calls": [made], "extra": extra}


def _output(second: float, call: str, code: int, **extra: object) -> dict[str, object]:
    held: dict[str, object] = {"raw_output": "x", "returncode": code, "timestamp": T + second}
    return {"role": "tool", "content": f"<returncode>{code}</returncode>", "tool_call_id": call, "extra": held | extra}


MESSAGES: list[dict[str, object]] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Fix the bug"},
    _answer(5, 2, "c1", "ls"),
    _output(5.5, "c1", 0),
    _answer(9, 6, "c2", "make", prompt_cache_hit_tokens=64),
    _output(12, "c2", 2),
    _answer(15, 12, "c3", "echo done"),
    {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
]
RUN = {
    "trajectory_format": "mini-swe-agent-1.1",
    "info": {
        "model_stats": {"api_calls": 4, "instance_cost": 0.0016},
        "config": {"model": {"model_name": "deepseek/deepseek-chat"}},
    },
    "messages": MESSAGES,
}


def _one(value: object) -> Piece:
    (piece,), skips = read(MiniSweAgent(), document(json.dumps(value).encode(), "x.traj.json"))
    assert not skips.all()
    return piece


def _real(name: str) -> Piece:
    path = sample(f"traces/mini_swe_agent/{name}.traj.json")
    (piece,), skips = read(MiniSweAgent(), document(path.read_bytes(), path.name))
    assert not skips.all()
    return piece


def test_it_claims_its_own_files_and_no_others() -> None:
    assert claimed(MiniSweAgent()) == files_of("mini_swe_agent")


def test_the_shortest_run() -> None:
    piece = _real("local")
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert (piece.timing, {(span.start, span.end) for span in piece.spans}) == ("none", {(0.0, 0.0)})
    assert [len(call.prompt or ()) for _, call in calls] == [2, 4]
    assert [(use.name, use.failed) for _, use in tools] == [("bash", False), ("bash", None)]
    assert [use.issued_by for _, use in tools] == [span.id for span, _ in calls]
    assert piece.title is not None
    assert piece.title.startswith("Please solve this issue: Blah blah blah")


def test_a_run_of_ten_commands_of_which_two_fail() -> None:
    piece = _real("github_issue")
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert len(calls) == len(tools) == 10
    assert [use.failed for _, use in tools] == [True, False, False, False, False, False, False, True, False, None]
    assert {(call.usage.input_tokens, call.model) for _, call in calls} == {(None, "unknown")}


def test_times_of_messages_bound_calls_and_commands() -> None:
    piece = _one(RUN)
    calls, tools = calls_of(piece.spans), tools_of(piece.spans)
    assert (piece.timing, extent(piece), piece.title) == ("messages", 13.0, "Fix the bug")
    assert [length(span) for span, _ in calls] == [3.0, 3.5, 3.0]  # the first since the second that the API tells
    assert [(length(span), use.failed, span.error) for span, use in tools[:2]] == [
        (0.5, False, None),
        (3.0, True, "exit_code"),
    ]
    assert [use.call_id for _, use in tools] == ["c1", "c2", "c3"]
    assert tools[2][0].end is None  # nobody heard the end of the last
    assert [call.usage.cache_read for _, call in calls] == [None, 64, None]
    assert {(call.cost, call.model, call.provider) for _, call in calls} == {(400, "deepseek-chat", "deepseek")}


def test_remarks_tell_of_the_first_start_and_of_calls_that_are_missing() -> None:
    remarks = _one(RUN).remarks
    assert any(remark.startswith("The first call's start is the whole second") for remark in remarks)
    assert any("made 4 calls, of which the file keeps 3" in remark for remark in remarks)


def test_commands_of_one_answer_end_together() -> None:
    both = _answer(5, 2, "c1", "ls")
    extra = both["extra"]
    assert isinstance(extra, dict)
    extra["actions"] = [{"command": "ls", "tool_call_id": "c1"}, {"command": "pwd", "tool_call_id": "c2"}]
    broken = _output(7, "c2", -1, exception_info="TimeoutExpired: Command 'pwd' timed out after 2 seconds")
    piece = _one(RUN | {"messages": [*MESSAGES[:2], both, _output(7, "c1", 0), broken]})
    assert [(use.call_id, length(span), use.failed) for span, use in tools_of(piece.spans)] == [
        ("c1", 2.0, False),
        ("c2", 2.0, True),
    ]


def test_an_older_version_keeps_times_beside_the_text() -> None:
    messages = [
        {"role": "system", "content": "s", "timestamp": T},
        {"role": "user", "content": "Fix it", "timestamp": T + 1},
        {"role": "assistant", "content": "```bash\nls\n```", "timestamp": T + 4},
        {"role": "user", "content": "<returncode>0</returncode>", "timestamp": T + 6},
    ]
    piece = _one({"trajectory_format": "mini-swe-agent-1", "messages": messages})
    ((call, _),) = calls_of(piece.spans)
    ((tool, use),) = tools_of(piece.spans)
    assert (length(call), length(tool), use.failed, use.issued_by) == (3.0, 2.0, False, call.id)


def test_answers_of_the_responses_api() -> None:
    asked = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'}
    messages = [
        {"role": "user", "content": "Fix it"},
        {
            "object": "response",
            "model": "gpt-5",
            "created_at": T + 1,
            "output": [asked],
            "usage": {"input_tokens": 7, "output_tokens": 2},
            "extra": {"timestamp": T + 3.0, "actions": [{"command": "ls", "tool_call_id": "c1"}]},
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": "x",
            "extra": {"returncode": 0, "timestamp": T + 4.0},
        },
    ]
    piece = _one({"trajectory_format": "mini-swe-agent-1.1", "messages": messages})
    ((span, call),) = calls_of(piece.spans)
    ((tool, use),) = tools_of(piece.spans)
    assert (length(span), call.model, call.usage.input_tokens, [ref.id for ref in call.tool_calls]) == (
        2.0,
        "gpt-5",
        7,
        ["c1"],
    )
    assert (length(tool), use.call_id, use.failed) == (1.0, "c1", False)


def test_what_cannot_be_used_is_counted() -> None:
    pieces, skips = read(
        MiniSweAgent(),
        document(json.dumps(RUN | {"messages": [7, *MESSAGES]}).encode(), "a"),
        document(json.dumps(RUN | {"messages": MESSAGES[:2]}).encode(), "b"),
    )
    assert len(pieces) == 1
    assert {(skip.reason, skip.first) for skip in skips.all()} == {
        ("a message of unknown shape", "a:1: message 1"),
        ("a trajectory without an answer of the model", "b:1"),
    }


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_damage_raises(data: st.DataObject) -> None:
    found = document(data.draw(damaged([json.dumps(RUN).encode(), json.dumps(MESSAGES).encode()])))
    MiniSweAgent().claims(found.sample())
    for piece in MiniSweAgent().read([found], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_damage_to_real_files_raises(data: st.DataObject) -> None:
    paths = sorted(sample("traces/mini_swe_agent").glob("*.json"))
    for piece in MiniSweAgent().read([document(data.draw(damaged([path.read_bytes() for path in paths])))], Skips()):
        assert {span.task for span in piece.spans} == {piece.task}
