"""The account of a set for machines: JSON in a stable schema.

As in `document`: a field's name ends in its unit (``_s`` seconds, ``_usd_micro`` millionths of a US dollar), ``null``
is unknown, never 0; fields may be added under the same schema name.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from headway.app.report.document import FindingLine, LeftOut, finding_line, left_out_of
from headway.app.report.sums import AtLeast, CachedShare, Sum, at_least, cached_share, cached_share_known, sum_of
from headway.trace.facts import CallPoint, TaskFacts
from headway.trace.set_study import ChangedSet, LeverRow, SetReport
from headway.trace.sets import Row, SetAnatomy, Spread
from headway.trace.sources.intake import Intake
from headway.trace.sources.verdict import Aspect
from headway.trace.stats import Line, Quantile


class At(Struct, frozen=True, kw_only=True):
    """A quantile; an end of its interval is ``null`` where there are too few values."""

    q: float
    value: float
    low: float | None
    high: float | None


class Spreading(Struct, frozen=True, kw_only=True):
    """How one figure is spread."""

    known: int
    of: int
    mean: float
    at: tuple[At, ...]


class Part(Struct, frozen=True, kw_only=True):
    """A phase, an agent, a tool or a model on the critical paths of all timed tasks."""

    name: str
    tasks: int
    share: float
    on_path_s: Spreading
    typical_s: float
    tail_s: float


class ToolPart(Struct, frozen=True, kw_only=True):
    """A tool."""

    name: str
    uses: int
    failed: int | None
    """``null`` where nobody saw how some uses ended."""
    failed_at_least: int | None
    again: int | None
    """``null`` where the arguments of some uses are not recorded."""
    again_at_least: int | None
    use_s: float | None
    """Mean of the uses of which it is known; ``null`` where that is none."""
    path: Part | None


class ModelPart(Struct, frozen=True, kw_only=True):
    """A model."""

    name: str
    calls: int
    failed: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd_micro: int | None
    at_least: AtLeast
    """The same sums, known also where only some calls tell them."""
    path: Part | None


class Saving(Struct, frozen=True, kw_only=True):
    """A lever over the set: E2E as recorded and replayed, at p50 and p95."""

    key: str
    tasks: int
    of: int
    before_s: tuple[At, ...]
    after_s: tuple[At, ...]
    tokens: float | None
    cost_usd_micro: float | None
    tokens_at_least: float | None
    cost_usd_micro_at_least: float | None
    assumes: str
    tradeoff: str
    rule: str
    how: str


class Recurring(Struct, frozen=True, kw_only=True):
    """One kind of finding over the tasks."""

    name: str
    tasks: int
    of: int
    path_s: float | None
    share: float
    cost_usd_micro: int | None
    cost_usd_micro_at_least: Sum
    """Over the tasks; of some it may be unknown."""
    worst_task: str
    worst: FindingLine


class TaskAtAGlance(Struct, frozen=True, kw_only=True):
    """One task of the set."""

    task: str
    title: str | None
    e2e_s: float | None
    iterations: int
    cost_usd_micro: int | None
    at_least: AtLeast


class SetAccount(Struct, frozen=True, kw_only=True):
    """The whole document of ``headway explain --json`` for more tasks than one."""

    schema: str = "headway.set/1"
    tasks: int
    timed: int
    failed: int
    sources: dict[str, int]
    first: float | None
    last: float | None
    e2e_s: Spreading | None
    task_ttft_s: Spreading | None
    iterations: Spreading | None
    iterations_histogram: tuple[tuple[int, int], ...]
    phases: tuple[Part, ...]
    agents: tuple[Part, ...]
    tools: tuple[ToolPart, ...]
    models: tuple[ModelPart, ...]
    input_tokens: Spreading | None
    output_tokens: Spreading | None
    recomputed_tokens: Spreading | None
    cost_usd_micro: Spreading | None
    input_tokens_at_least: Spreading | None
    """Where some tasks tell only a part: the spread over all that tell anything, each taken for what it tells, so that
    mean and quantiles are lower bounds. ``null`` where there are no such tasks; so too the next two."""
    output_tokens_at_least: Spreading | None
    cost_usd_micro_at_least: Spreading | None
    at_least: AtLeast
    """Over all calls of all tasks."""
    step_cost_usd_micro: Spreading | None
    retries_cost_usd_micro: Spreading | None
    cached_share: float | None
    cached_share_known: CachedShare | None
    """Of the calls that tell it, which are all of them where ``cached_share`` is known."""
    prefill: Line | None
    """``slope`` is seconds per computed token, ``intercept`` seconds."""
    scatter: tuple[CallPoint, ...]
    findings: tuple[FindingLine, ...]
    recurring: tuple[Recurring, ...]
    sampled: int
    what_if: ChangedSet | None
    levers: tuple[Saving, ...]
    slowest: tuple[TaskAtAGlance, ...]
    quality: tuple[Aspect, ...]
    remarks: tuple[tuple[str, int], ...]
    left_out: LeftOut


def set_json(report: SetReport, intake: Intake | None) -> str:
    """The account of a set: a `SetAccount` as JSON on one line."""
    made = report.anatomy
    account = SetAccount(
        tasks=made.tasks,
        timed=made.timed,
        failed=made.failed,
        sources=made.sources,
        first=made.first,
        last=made.last,
        e2e_s=_spread(made.e2e),
        task_ttft_s=_spread(made.task_ttft),
        iterations=_spread(made.n),
        iterations_histogram=made.histogram,
        phases=tuple(map(_part, made.phases)),
        agents=tuple(map(_part, made.stages)),
        tools=_tools(made),
        models=_models(made),
        input_tokens=_spread(made.input_tokens),
        output_tokens=_spread(made.output_tokens),
        recomputed_tokens=_spread(made.recomputed),
        cost_usd_micro=_spread(made.cost),
        input_tokens_at_least=_spread(made.least.input_tokens),
        output_tokens_at_least=_spread(made.least.output_tokens),
        cost_usd_micro_at_least=_spread(made.least.cost),
        at_least=at_least(made.spent),
        step_cost_usd_micro=_spread(made.step_cost),
        retries_cost_usd_micro=_spread(made.retries_cost),
        cached_share=cached_share(made.spent),
        cached_share_known=cached_share_known(made.spent),
        prefill=made.prefill,
        scatter=made.scatter,
        findings=tuple(map(finding_line, report.findings)),
        recurring=_recurring(report),
        sampled=report.sampled,
        what_if=report.changed,
        levers=tuple(map(_saving, report.levers)),
        slowest=tuple(map(_glance, report.slowest)),
        quality=report.aspects,
        remarks=report.remarks,
        left_out=left_out_of(intake),
    )
    return msgspec.json.encode(account).decode()


def _at(found: Sequence[Quantile]) -> tuple[At, ...]:
    return tuple(At(q=one.q, value=one.value, low=one.low, high=one.high) for one in found)


def _spread(one: Spread | None) -> Spreading | None:
    return None if one is None else Spreading(known=one.known, of=one.of, mean=one.mean, at=_at(one.quantiles))


def _part(row: Row) -> Part:
    path = row.on_path
    return Part(
        name=row.name,
        tasks=row.tasks,
        share=row.share,
        on_path_s=Spreading(known=path.known, of=path.of, mean=path.mean, at=_at(path.quantiles)),
        typical_s=row.typical,
        tail_s=row.tail,
    )


def _tools(made: SetAnatomy) -> tuple[ToolPart, ...]:
    return tuple(
        ToolPart(
            name=tool.name,
            uses=tool.uses,
            failed=tool.failed.exact,
            failed_at_least=tool.failed.least,
            again=tool.again.exact,
            again_at_least=tool.again.least,
            use_s=tool.seconds,
            path=None if tool.on_path is None else _part(tool.on_path),
        )
        for tool in made.tools
    )


def _models(made: SetAnatomy) -> tuple[ModelPart, ...]:
    return tuple(
        ModelPart(
            name=model.name,
            calls=model.calls,
            failed=model.failed,
            input_tokens=model.spent.input_tokens.exact,
            output_tokens=model.spent.output_tokens.exact,
            cost_usd_micro=model.spent.cost.exact,
            at_least=at_least(model.spent),
            path=None if model.on_path is None else _part(model.on_path),
        )
        for model in made.models
    )


def _saving(row: LeverRow) -> Saving:
    return Saving(
        key=row.lever.key,
        tasks=row.tasks,
        of=row.of,
        before_s=_at(row.before),
        after_s=_at(row.after),
        tokens=row.tokens,
        cost_usd_micro=row.cost,
        tokens_at_least=row.tokens_least,
        cost_usd_micro_at_least=row.cost_least,
        assumes=row.lever.assumes,
        tradeoff=row.lever.tradeoff,
        rule=row.lever.rule,
        how=row.lever.how,
    )


def _recurring(report: SetReport) -> tuple[Recurring, ...]:
    return tuple(
        Recurring(
            name=row.name,
            tasks=row.tasks,
            of=row.of,
            path_s=row.seconds,
            share=row.share,
            cost_usd_micro=row.cost.exact,
            cost_usd_micro_at_least=sum_of(row.cost),
            worst_task=row.worst_task,
            worst=finding_line(row.worst),
        )
        for row in report.recurring
    )


def _glance(row: TaskFacts) -> TaskAtAGlance:
    return TaskAtAGlance(
        task=row.task,
        title=row.title,
        e2e_s=row.e2e,
        iterations=row.n,
        cost_usd_micro=row.spent.cost.exact,
        at_least=at_least(row.spent),
    )
