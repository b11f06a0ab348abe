"""The list of tasks for machines: JSON in a stable schema, by the rules of `headway.app.report.document`."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from headway.app.report.sums import Sum, sum_of
from headway.trace.task_row import TaskRow


class TaskLine(Struct, frozen=True, kw_only=True):
    """One task of ``headway tasks --json``."""

    task: str
    session: str | None
    started_at: float
    ended_at: float | None
    spans: int
    calls: int
    errors: int
    failed: bool
    """Its last call failed; where it did not, the task was answered after what had."""
    tokens: int | None
    tokens_at_least: Sum
    models: tuple[str, ...]
    refused: bool
    """No call of it reached an engine."""


class TaskList(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway tasks --json``."""

    schema: str = "headway.tasks/1"
    tasks: tuple[TaskLine, ...]


def tasks_json(rows: Sequence[TaskRow]) -> str:
    """The list of tasks: a `TaskList` as JSON on one line."""
    return msgspec.json.encode(TaskList(tasks=tuple(map(_task_line, rows)))).decode()


def _task_line(row: TaskRow) -> TaskLine:
    return TaskLine(
        task=row.task,
        session=row.session,
        started_at=row.started_at,
        ended_at=row.ended_at,
        spans=row.spans,
        calls=row.calls,
        errors=row.errors,
        failed=row.failed,
        tokens=row.tokens.exact,
        tokens_at_least=sum_of(row.tokens),
        models=row.models,
        refused=row.refused,
    )
