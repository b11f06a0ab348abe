"""The anatomy of a set of tasks: how its times, tokens and money are spread, and what the slow ones spend more on."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from operator import attrgetter
from typing import TypeVar

from msgspec import Struct

from headway.core.spent import Spent, Sum, together
from headway.trace.facts import CallPoint, ModelFacts, TaskFacts, ToolFacts
from headway.trace.phases import Phase
from headway.trace.stats import Line, Quantile, fit, quantiles, rank

Held = TypeVar("Held")
Column = tuple[list[int], list[Held]]
"""Places of tasks, ascending, and what each of them holds: most names occur in few of many tasks."""

SCATTER = 2000
"""Points of the scatter that are kept, evenly chosen by input tokens."""


class Spread(Struct, frozen=True, kw_only=True):
    """How one figure is spread over the tasks (or calls) of which it is known."""

    known: int
    of: int
    mean: float
    quantiles: tuple[Quantile, ...]
    """p50, p95, p99. Those of parts do not add up to those of the whole."""


class Row(Struct, frozen=True, kw_only=True):
    """A phase, a stage, a tool or a model over all timed tasks."""

    name: str
    tasks: int
    """In which it occurs."""
    share: float
    """Of the path seconds of all tasks together."""
    on_path: Spread
    """Seconds on the critical path per task, 0 where it does not occur."""
    typical: float
    """Mean path seconds in the middle fifth of the tasks by E2E."""
    tail: float
    """Mean path seconds in the slowest tenth."""


class ToolRow(Struct, frozen=True, kw_only=True):
    """One tool over the whole set."""

    name: str
    uses: int
    failed: Sum
    """Uses that failed; its parts are the uses, known where somebody saw how they ended."""
    again: Sum
    """Uses with the arguments of an earlier one in the same task; its parts are the uses, known where arguments are."""
    seconds: float | None
    """Mean of the uses of which it is known how long they took; unknown where that is none."""
    on_path: Row | None
    """``None`` where no task of the set is timed."""


class ModelRow(Struct, frozen=True, kw_only=True):
    """One model over the whole set."""

    name: str
    calls: int
    failed: int
    spent: Spent
    on_path: Row | None


class Least(Struct, frozen=True, kw_only=True):
    """How sums are spread over all tasks that tell anything of them, each taken for what it comes to at least.

    ``None`` where every task tells all or nothing, so that the spread of the sums themselves says it all. The true mean
    and quantiles of these tasks are no lower; an interval's upper end bounds nothing.
    """

    input_tokens: Spread | None
    output_tokens: Spread | None
    cost: Spread | None


class SetAnatomy(Struct, frozen=True, kw_only=True):
    """The whole account of a set."""

    tasks: int
    timed: int
    """Tasks of which it is known when things happened; all figures in seconds are about them."""
    failed: int
    sources: dict[str, int]
    first: float | None
    """Epoch seconds of the earliest start."""
    last: float | None
    e2e: Spread | None
    task_ttft: Spread | None
    n: Spread | None
    histogram: tuple[tuple[int, int], ...]
    """N and how many tasks have it, ascending."""
    phases: tuple[Row, ...]
    """Largest share first, as in all tables here."""
    stages: tuple[Row, ...]
    tools: tuple[ToolRow, ...]
    models: tuple[ModelRow, ...]
    input_tokens: Spread | None
    output_tokens: Spread | None
    cost: Spread | None
    """Micro-USD per task."""
    least: "Least"
    spent: Spent
    """Of all calls of all tasks."""
    step_cost: Spread | None
    """Micro-USD per call of the loop."""
    recomputed: Spread | None
    """Where some tasks do not tell, it counts as known only in those of several calls: in others it can be but 0."""
    retries_cost: Spread | None
    """Where some tasks do not tell, it counts as known only in those with tools that tell all costs and tools' ends."""
    prefill: Line | None
    """TTFT over computed input tokens: seconds per token, and what a call waits whatever it reads."""
    scatter: tuple[CallPoint, ...]


def anatomy_of(rows: Sequence[TaskFacts]) -> SetAnatomy:
    """Take a set apart; its tasks in any order."""
    timed = sorted([row for row in rows if row.e2e is not None], key=attrgetter("e2e"))
    points = sorted([point for row in rows for point in row.points], key=attrgetter("input_tokens"))
    starts = [row.started_at for row in timed]
    return SetAnatomy(
        tasks=len(rows),
        timed=len(timed),
        failed=sum(row.failed for row in rows),
        sources=dict(Counter(row.source for row in rows)),
        first=min(starts, default=None),
        last=max(starts, default=None),
        e2e=spread([row.e2e for row in rows]),
        task_ttft=spread([row.task_ttft for row in rows]),
        n=spread([float(row.n) for row in rows]),
        histogram=tuple(sorted(Counter(row.n for row in rows).items())),
        phases=_rows(timed, _columns(row.phases for row in timed)),
        stages=_rows(timed, _columns(row.stages for row in timed)),
        tools=_tools(rows, timed),
        models=_models(rows, timed),
        input_tokens=spread([row.spent.input_tokens.exact for row in rows]),
        output_tokens=spread([row.spent.output_tokens.exact for row in rows]),
        cost=spread([row.spent.cost.exact for row in rows]),
        least=Least(
            input_tokens=_least([row.spent.input_tokens for row in rows]),
            output_tokens=_least([row.spent.output_tokens for row in rows]),
            cost=_least([row.spent.cost for row in rows]),
        ),
        spent=together([row.spent for row in rows]),
        step_cost=spread([cost for row in rows for cost in row.step_costs]),
        recomputed=_fairly(rows, lambda row: row.recomputed, lambda row: row.calls > 1),
        retries_cost=_fairly(rows, lambda row: row.retries_cost, _tells_retries),
        prefill=fit(
            [
                (point.input_tokens - point.cache_read, point.ttft)
                for point in points  # of which it is known how much of the prompt was computed
                if point.cache_read is not None and point.cache_read <= point.input_tokens
            ]
        ),
        scatter=tuple(_thinned(points)),
    )


def spread(values: Iterable[float | None]) -> Spread | None:
    """How the known ones among the values are spread; ``None`` when none is."""
    all_values = list(values)
    known = [value for value in all_values if value is not None]
    if not known:
        return None
    return Spread(known=len(known), of=len(all_values), mean=sum(known) / len(known), quantiles=quantiles(known))


def _fairly(
    rows: Sequence[TaskFacts], figure: Callable[[TaskFacts], float | None], tells: Callable[[TaskFacts], bool]
) -> Spread | None:
    """The spread of a figure that some tasks do not tell: then it counts as known only where the record always tells.

    Where it can be but 0 it is known whatever is recorded: tasks known for that reason would be no sample of all.
    """
    partial = any(figure(row) is None for row in rows)
    return spread([figure(row) if tells(row) or not partial else None for row in rows])


def _tells_retries(row: TaskFacts) -> bool:
    seen = all(tool.ended == tool.uses for tool in row.tools.values())
    return bool(row.tools) and seen and all(model.spent.cost.exact is not None for model in row.models.values())


def _least(sums: Sequence[Sum]) -> Spread | None:
    unsure = [one for one in sums if one.known != one.of]
    return spread([one.least for one in sums]) if any(one.partial for one in unsure) else None


def _columns(tasks: Iterable[Mapping[Phase, Held] | Mapping[str, Held]]) -> dict[str, Column[Held]]:
    columns: dict[str, Column[Held]] = {}
    for place, parts in enumerate(tasks):
        for name, held in parts.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = ([], [])
            column[0].append(place)
            column[1].append(held)
    return columns


def _rows(timed: Sequence[TaskFacts], columns: Mapping[str, Column[float]]) -> tuple[Row, ...]:
    """One row per name; the tasks are in order of E2E."""
    whole = sum([row.e2e or 0.0 for row in timed])
    rows = [_row(str(name), column, len(timed), whole) for name, column in columns.items()]
    return tuple(sorted(rows, key=lambda row: -row.share))


def _row(name: str, column: Column[float], size: int, whole: float) -> Row:
    _, seconds = column
    total = sum(seconds)
    ordered = [0.0] * (size - len(seconds)) + sorted(seconds)
    middle, slowest = (rank(size, 0.4), rank(size, 0.6) + 1), (size - ceil(size / 10), size)
    return Row(
        name=name,
        tasks=len(seconds),
        share=total / whole if whole else 0.0,
        on_path=Spread(known=size, of=size, mean=total / size, quantiles=quantiles(ordered)),
        typical=_mean(column, *middle),
        tail=_mean(column, *slowest),
    )


def _mean(column: Column[float], first: int, beyond: int) -> float:
    """Over the tasks of a range of places."""
    places, seconds = column
    return sum(seconds[bisect_left(places, first) : bisect_left(places, beyond)]) / (beyond - first)


def _on_path(
    timed: Sequence[TaskFacts], columns: Mapping[str, Column[ToolFacts] | Column[ModelFacts]]
) -> dict[str, Row]:
    seconds = {name: (places, [one.on_path for one in held]) for name, (places, held) in columns.items()}
    return {row.name: row for row in _rows(timed, seconds)}


def _tools(rows: Sequence[TaskFacts], timed: Sequence[TaskFacts]) -> tuple[ToolRow, ...]:
    paths = _on_path(timed, _columns(row.tools for row in timed))
    found: list[ToolRow] = []
    for name, (_, tools) in _columns(row.tools for row in rows).items():
        uses, timed_uses = sum([tool.uses for tool in tools]), sum([tool.timed for tool in tools])
        found.append(
            ToolRow(
                name=name,
                uses=uses,
                failed=Sum(sum([tool.failed for tool in tools]), sum([tool.ended for tool in tools]), uses),
                again=Sum(sum([tool.again for tool in tools]), sum([tool.told for tool in tools]), uses),
                seconds=sum([tool.seconds for tool in tools]) / timed_uses if timed_uses else None,
                on_path=paths.get(name),
            )
        )
    return tuple(sorted(found, key=lambda tool: -(tool.on_path.share if tool.on_path else 0.0)))


def _models(rows: Sequence[TaskFacts], timed: Sequence[TaskFacts]) -> tuple[ModelRow, ...]:
    paths = _on_path(timed, _columns(row.models for row in timed))
    found: list[ModelRow] = []
    for name, (_, models) in _columns(row.models for row in rows).items():
        found.append(
            ModelRow(
                name=name,
                calls=sum([model.calls for model in models]),
                failed=sum([model.failed for model in models]),
                spent=together([model.spent for model in models]),
                on_path=paths.get(name),
            )
        )
    return tuple(sorted(found, key=lambda model: -model.calls))


def _thinned(points: Sequence[CallPoint]) -> list[CallPoint]:
    step = len(points) / SCATTER
    return list(points) if step <= 1 else [points[int(i * step)] for i in range(SCATTER)]
