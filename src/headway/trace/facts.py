"""One task as a row of a set: what is left of it when its spans are put away."""

from collections.abc import Collection, Iterator
from itertools import pairwise

from msgspec import Struct

from headway.core.money import MicroUsd
from headway.core.span import ModelCall, Retrieval, Step, ToolUse
from headway.core.spent import Spent, together
from headway.core.task import SessionId, TaskId
from headway.trace.answer import task_ttft
from headway.trace.charges import charges_of, spent_by
from headway.trace.ended import failed, untold
from headway.trace.loop import spent
from headway.trace.own_totals import in_all
from headway.trace.phases import Phase
from headway.trace.prices import PriceOf, price_for
from headway.trace.reuse import counted, rereads
from headway.trace.sources.verdict import Verdict
from headway.trace.study import Study, Task, study
from headway.trace.totals import failures_of, tools_of


class ToolFacts(Struct, kw_only=True, array_like=True):
    """All uses of one tool, or all retrievals from one source, in one task."""

    uses: int = 0
    failed: int = 0
    """Uses that are known to have failed..."""
    ended: int = 0
    """...out of those whose end somebody saw; the others may have failed too."""
    again: int = 0
    """Uses with the same arguments as an earlier one."""
    seconds: float = 0.0
    """Sum over the uses of which it is known how long they took, overlaps counted twice..."""
    on_path: float = 0.0
    told: int = 0
    """Uses whose arguments are known; those of the others may have been an earlier one's."""
    timed: int = 0
    """...and how many these are: not those that have no end, or that share one gap."""


class ModelFacts(Struct, kw_only=True, array_like=True):
    """All calls to one model in one task."""

    calls: int = 0
    failed: int = 0
    on_path: float = 0.0
    spent: Spent = Spent()


class CallPoint(Struct, frozen=True, gc=False):
    """One call in the scatter of reading against waiting."""

    input_tokens: int
    cache_read: int | None
    ttft: float
    """Seconds."""


class TaskFacts(Struct, frozen=True, kw_only=True, array_like=True):
    """One task. Seconds; ``None`` is unknown; a failed task's times are those until it failed."""

    task: TaskId
    session: SessionId | None
    title: str | None
    source: str
    started_at: float
    """Epoch seconds; 0 where the source keeps no times."""
    e2e: float | None
    """Unknown where nothing in the record tells how long anything took."""
    n: int
    """Model calls on the loop; without times, all that are in no tool."""
    calls: int
    failed: bool
    """Whether the task ended in an error: that of its last call on the loop, or of its root."""
    failures: int
    task_ttft: float | None
    human: float
    phases: dict[Phase, float]
    """Seconds on the critical path; they sum to ``e2e``. Empty where that is unknown, like ``stages``."""
    stages: dict[str, float]
    """Seconds on the critical path by agent or step, the innermost named one; ``""`` outside of all."""
    tools: dict[str, ToolFacts]
    models: dict[str, ModelFacts]
    spent: Spent
    """Of all calls."""
    step_costs: tuple[MicroUsd | None, ...]
    """Of the loop's calls, in order."""
    recomputed: int | None
    """Input tokens computed although an earlier call of the task had; unknown where cached counts are."""
    retries_cost: MicroUsd | None
    """What the calls that asked for a failed tool again cost; unknown where a price, a count, who
    asked or how tools ended is."""
    points: tuple[CallPoint, ...]


def facts_of(task: Task, verdict: Verdict, *, title: str | None = None, prices: PriceOf = price_for) -> TaskFacts:
    """The row of one task.

    Args:
        task: all its spans, in any order and any state, or its study.
        verdict: what they can be trusted for.
        title: the first words of what the user asked.
        prices: where the prices come from of calls whose cost was not recorded.
    """
    case = study(task)
    tree, held = case.tree, case.held
    on_path = _on_path(case) if verdict.timed else {}
    models, costs = _models(case, on_path, prices)
    root = tree.spans[0]
    loop = (
        [turn.call for turn in case.turns]
        if verdict.timed
        else [i for i in held.calls if not case.in_tool[i] and i not in case.again]
    )
    last = tree.spans[loop[-1]] if loop else root
    return TaskFacts(
        task=root.task,
        session=next((span.session for span in tree.spans if span.session is not None), None),
        title=title,
        source=verdict.source,
        started_at=tree.origin,
        e2e=case.e2e if verdict.timed else None,
        n=len(loop),
        calls=len(held.calls),
        failed=root.error is not None or last.error is not None,
        failures=failures_of(tree, held.calls, tools_of(tree)),
        task_ttft=task_ttft(case, []) if verdict.timed else None,
        human=tree.human,
        phases={phase: seconds for phase, seconds in spent(case.walked if verdict.timed else ()).items() if seconds},
        stages=_stages(case, on_path),
        tools=_tools(case, on_path, timed=verdict.timing != "none"),
        models=models,
        spent=in_all(root.work, together([model.spent for model in models.values()])),
        step_costs=tuple(costs[i] for i in loop),
        recomputed=_recomputed(case),
        retries_cost=_retries_cost(case, costs),
        points=tuple(_points(case)) if verdict.timed else (),
    )


def _on_path(case: Study) -> dict[int, float]:
    seconds: dict[int, float] = {}
    for stretch in case.walked:
        seconds[stretch.owner] = seconds.get(stretch.owner, 0.0) + (stretch.end - stretch.start)
    return seconds


def _stages(case: Study, on_path: dict[int, float]) -> dict[str, float]:
    """By the innermost step with a name of its own: an agent's, else the step's own name."""
    tree = case.tree
    name = [""] * len(tree.spans)
    for i, above in enumerate(tree.parent):
        name[i] = name[above] if i else ""
        if tree.kinds[i] is Step:
            span = tree.spans[i]
            agent = span.work.agent if type(span.work) is Step else None
            if agent is not None or (i and above == 0 and not tree.made_root):
                name[i] = agent or span.name
    stages: dict[str, float] = {}
    for i, seconds in on_path.items():
        stages[name[i]] = stages.get(name[i], 0.0) + seconds
    return stages


def _tools(case: Study, on_path: dict[int, float], *, timed: bool) -> dict[str, ToolFacts]:
    tree = case.tree
    found: dict[str, ToolFacts] = {}
    seen: set[tuple[str, str]] = set()
    for i, kind in enumerate(tree.kinds):
        if kind is not ToolUse and kind is not Retrieval:
            continue
        span = tree.spans[i]
        if type(span.work) is ToolUse:
            name, arguments = span.work.name, span.work.arguments
        else:
            name, arguments = (type(span.work) is Retrieval and span.work.source) or "retrieval", None
        facts = found.get(name)
        if facts is None:
            facts = found[name] = ToolFacts()
        facts.uses += 1
        facts.failed += failed(span)
        facts.ended += not untold(span)
        if timed and span.end is not None and span.end >= span.start and i not in case.held.untimed:
            facts.seconds += tree.end[i] - tree.start[i]
            facts.timed += 1
        facts.on_path += on_path.get(i, 0.0)
        if arguments is not None:
            facts.told += 1
            facts.again += (name, arguments) in seen
            seen.add((name, arguments))
    return found


def _models(
    case: Study, on_path: dict[int, float], prices: PriceOf
) -> tuple[dict[str, ModelFacts], dict[int, MicroUsd | None]]:
    """By model; and what each call cost."""
    found: dict[str, ModelFacts] = {}
    made: dict[str, list[tuple[ModelCall, float]]] = {}
    asked: dict[str, list[int]] = {}
    costs: dict[int, MicroUsd | None] = {}
    for i in case.held.calls:
        span = case.tree.spans[i]
        call = span.work
        if type(call) is not ModelCall:
            continue
        facts = found.get(call.model)
        if facts is None:
            facts = found[call.model] = ModelFacts()
            made[call.model], asked[call.model] = [], []
        facts.calls += 1
        facts.failed += span.error is not None
        facts.on_path += on_path.get(i, 0.0)
        made[call.model].append((call, span.start))
        asked[call.model].append(i)
    for name, facts in found.items():
        charges = charges_of(made[name], prices)
        facts.spent = spent_by(charges)
        costs.update(zip(asked[name], charges.costs, strict=True))
    return found, costs


def _recomputed(case: Study) -> int | None:
    found, untold = rereads(case)
    return None if untold or not counted(case) else sum(reread.computed - reread.fresh for reread in found.values())


def _retries_cost(case: Study, costs: dict[int, MicroUsd | None]) -> MicroUsd | None:
    """Calls that asked for a tool again right after it had failed: each such call once."""
    tree = case.tree
    tools = [span for span in tree.spans if type(span.work) is ToolUse]
    if any(map(untold, tools)):
        return None
    by_id = {tree.spans[i].id: i for i in case.held.calls}
    uses: dict[str, list[tuple[float, bool, int | None]]] = {}
    for i, span in enumerate(tree.spans):
        if type(span.work) is ToolUse:
            issuer = by_id.get(span.work.issued_by) if span.work.issued_by is not None else None
            uses.setdefault(span.work.name, []).append((tree.start[i], failed(span), issuer))
    asked: set[int] = set()
    for found in uses.values():
        for (_, wrong, first), (_, _, second) in pairwise(sorted(found, key=lambda use: use[0])):
            if wrong and second is None:
                return None  # who asked for it again is not recorded
            if wrong and second is not None and second != first:
                asked.add(second)
    return _paid([costs[i] for i in asked])


def _paid(costs: Collection[MicroUsd | None]) -> MicroUsd | None:
    return None if None in costs else MicroUsd(sum(cost or 0 for cost in costs))


def _points(case: Study) -> Iterator[CallPoint]:
    for i in case.held.calls:
        span = case.tree.spans[i]
        call = span.work
        if type(call) is ModelCall and call.first_token is not None and call.usage.input_tokens is not None:
            sent = span.start if call.sent is None else call.sent
            yield CallPoint(call.usage.input_tokens, call.usage.cache_read, call.first_token - sent)
