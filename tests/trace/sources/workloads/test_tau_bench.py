import msgspec
from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, calls, reasons, tools

from headway.core.span import ToolUse
from headway.trace.sources.digests import part
from headway.trace.sources.workloads.tau_bench import TauBench

ASKED = {"id": "c-1", "type": "function", "function": {"name": "find", "arguments": '{"x": 1}'}}
TRAJECTORY = {
    "task_id": 3,
    "trial": 1,
    "reward": 0.0,
    "traj": [
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": "Find it"},
        {"role": "assistant", "content": None, "tool_calls": [ASKED]},
        {"role": "tool", "tool_call_id": "c-1", "content": "Error: none"},
        {"role": "assistant", "content": "There is none."},
        {"role": "user", "content": "Thanks"},
        {"role": "assistant", "content": "Bye."},
        {"role": "user", "content": "###STOP###"},
    ],
}


def test_each_message_of_the_users_is_a_task_without_times_or_tokens() -> None:
    pieces, skips = read(TauBench(), document(msgspec.json.encode([TRAJECTORY]), "runs/airline.json"))
    assert reasons(skips) == {"a request that was never answered": 1}
    assert [(piece.title, piece.timing, len(calls(piece))) for piece in pieces] == [
        ("Find it", "none", 2),
        ("Thanks", "none", 1),
    ]
    assert pieces[0].spans[0].session == "airline, task 3, trial 1"
    (tool,) = tools(pieces[0])
    assert isinstance(tool.work, ToolUse)
    assert (tool.error, tool.work.failed, tool.work.result) == ("tool_error", True, part("tool", "Error: none"))
    assert calls(pieces[0])[1].prompt == (
        part("system", "Be kind"),
        part("user", "Find it"),
        part("assistant", 'find({"x": 1})'),
        part("tool", "Error: none"),
    )


def test_broken_trajectories_cost_themselves_only() -> None:
    rows = [TRAJECTORY, {"task_id": None}]
    pieces, skips = read(TauBench(), document(msgspec.json.encode(rows)))
    assert len(pieces) == 2
    assert reasons(skips)["a trajectory of another shape"] == 1


def test_it_claims_no_traces() -> None:
    assert claimed(TauBench()) == set()


def test_real_trajectories() -> None:
    pieces, skips = read(TauBench(), document(sample("workloads/tau-bench/gpt-4o-airline.json").read_bytes()))
    assert set(reasons(skips)) == {"a request that was never answered"}
    assert len({piece.spans[0].session for piece in pieces}) == 200
    assert sum(len(calls(piece)) for piece in pieces) == 2454
    assert sum(len(tools(piece)) for piece in pieces) == 1164
    assert sum(tool.error is not None for piece in pieces for tool in tools(piece)) == 73
    first = [piece for piece in pieces if piece.spans[0].session == "made, task 0, trial 0"]
    assert [(len(calls(piece)), len(tools(piece))) for piece in first] == [
        (1, 0),
        (1, 0),
        (3, 2),
        (2, 1),
        (2, 1),
        (4, 3),
        (2, 1),
    ]


def test_no_damage_raises() -> None:
    assert_unharmed(TauBench, [msgspec.json.encode([TRAJECTORY]), msgspec.json.encode(TRAJECTORY)])
