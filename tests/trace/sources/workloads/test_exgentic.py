import pytest
from claims import claimed
from importing import document, read, sample
from sessions import assert_unharmed, calls, lines, reasons, tools

from headway.core.span import ToolUse
from headway.trace.sources.digests import part
from headway.trace.sources.workloads.exgentic import Exgentic


def event(kind: str, spent: float | None, **more: object) -> dict[str, object]:
    return {"event": kind, "run_id": "r", "session_id": "s-1", "step": 1, "agent_cost": spent, **more}


def act(spent: float, name: str, **arguments: object) -> dict[str, object]:
    return event("action", spent, action={"name": name, "id": f"{name}-1", "arguments": arguments})


def saw(result: object) -> dict[str, object]:
    return event("observation", None, observation={"result": result})


ROWS = [
    saw({"sender": "user", "message": "Cancel my flight"}),
    act(0.01, "find", x=1),
    saw([1]),
    act(0.01, "look", x=2),
    saw("two"),
    act(0.025, "message", content="Which one?"),
    saw({"sender": "user", "message": "The first"}),
    act(0.03, "message", content="Done."),
    event("action", 0.0375, action=None),
]


def test_each_message_of_a_users_opens_a_task_and_a_call_is_what_the_cost_grew_by() -> None:
    pieces, skips = read(Exgentic(), document(lines(ROWS)))
    assert not skips
    assert [(piece.title, piece.timing) for piece in pieces] == [("Cancel my flight", "none"), ("The first", "none")]
    assert [[call.cost for call in calls(piece)] for piece in pieces] == [[10_000, 15_000], [5_000, 7_500]]
    assert [reference.name for reference in calls(pieces[0])[0].tool_calls] == ["find", "look"]
    works = [tool.work for tool in tools(pieces[0]) if isinstance(tool.work, ToolUse)]
    assert [(work.name, work.result) for work in works] == [
        ("find", part("tool", "[1]")),
        ("look", part("tool", '"two"')),
    ]
    assert len({work.issued_by for work in works}) == 1
    assert calls(pieces[1])[0].answer == part("assistant", "Done.")


def test_broken_events_are_counted() -> None:
    _, skips = read(Exgentic(), document(lines([*ROWS, {"event": "action"}])))
    assert reasons(skips) == {"a line that is not JSON, or not an event of a trajectory": 1}


def test_it_claims_no_traces() -> None:
    assert claimed(Exgentic()) == set()


@pytest.mark.parametrize(
    ("name", "tasks", "count", "actions", "cost"),
    [
        ("appworld", 1, 7, 31, 3_782_625),
        ("browsecompplus", 1, 26, 27, 6_011_570),
        ("swebench", 1, 32, 32, 2_190_265),
        ("tau2", 6, 7, 2, 298_730),  # six of its eight actions are messages
    ],
)
def test_real_trajectories(name: str, tasks: int, count: int, actions: int, cost: int) -> None:
    path = sample(f"workloads/exgentic/tests/benchmarks/recordings/{name}/trajectory.jsonl")
    pieces, skips = read(Exgentic(), document(path.read_bytes()))
    assert not skips
    assert (len(pieces), sum(len(calls(piece)) for piece in pieces)) == (tasks, count)
    assert sum(len(tools(piece)) for piece in pieces) == actions
    assert sum(call.cost or 0 for piece in pieces for call in calls(piece)) == cost


def test_no_damage_raises() -> None:
    assert_unharmed(Exgentic, [lines(ROWS)])
