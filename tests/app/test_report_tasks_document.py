import json

import msgspec

from headway.app.report.tasks_document import TaskList, tasks_json
from headway.core.spent import Sum
from headway.core.task import SessionId, TaskId
from headway.trace.task_row import TaskRow


def test_the_list_of_tasks_is_a_document() -> None:
    row = TaskRow(
        task=TaskId("t"),
        session=SessionId("s"),
        started_at=1.0,
        ended_at=None,
        spans=3,
        calls=2,
        errors=1,
        tokens=Sum(30, 1, 2),
        models=("m",),
    )
    assert json.loads(tasks_json([row])) == {
        "schema": "headway.tasks/1",
        "tasks": [
            {
                "task": "t",
                "session": "s",
                "started_at": 1.0,
                "ended_at": None,
                "spans": 3,
                "calls": 2,
                "errors": 1,
                "failed": False,
                "tokens": None,
                "tokens_at_least": {"sum": 30, "known": 1, "of": 2},
                "models": ["m"],
                "refused": False,
            }
        ],
    }
    assert msgspec.json.decode(tasks_json([]), type=TaskList).tasks == ()
