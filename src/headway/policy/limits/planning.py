"""Which counters a call is reserved on: its key's, its tenant's and its task's."""

from collections.abc import Callable
from typing import Final

from headway.core.access import Caller
from headway.core.limits import CALLER_LIMITS, TASK_LIMITS, Limit, Measure, TaskLimits, Window
from headway.core.task import TaskId
from headway.policy.limits.book import Kind
from headway.policy.limits.counter import Counter, Plan
from headway.policy.limits.periods import counter_name, day_of, month_of

_WHICH: Final[dict[Measure, int]] = {
    "requests": 0,
    "concurrency": 0,
    "calls": 0,
    "tokens": 1,
    "money": 2,
    "seconds": 0,
}


def plan_for(
    caller: Caller, task: TaskId, wall: float, number: int, known: Callable[[str, Callable[[], Counter]], Counter]
) -> Plan:
    """The plan of a caller's calls in one task on the day of ``wall``.

    Args:
        caller: whose limits.
        task: whose limits.
        wall: epoch seconds.
        number: what the plan is called.
        known: the counter of a name, made by the function given where there is none.
    """
    day = day_of(wall)
    plan = Plan(number, caller, day.start, day.end)
    key, tenant = caller.key, caller.tenant
    for scope, account, limits in (("key", key.id, key.limits), ("tenant", tenant.id, tenant.limits)):
        for name, (measure, window) in CALLER_LIMITS.items():
            limit: Limit | None = getattr(limits, name)
            if limit is not None:
                _add(plan, known, (scope, account, f"{scope} {account}"), (measure, window), limit, wall)
    both = _stricter(key.task, tenant.task)
    for name, (measure, window) in TASK_LIMITS.items():
        limit = both[name]
        if limit is not None:
            _add(plan, known, ("task", f"{tenant.id}:{task}", f"task {task}"), (measure, window), limit, wall)
    return plan


def _add(
    plan: Plan,
    known: Callable[[str, Callable[[], Counter]], Counter],
    account: tuple[str, str, str],
    counted: tuple[Measure, Window],
    limit: Limit,
    wall: float,
) -> None:
    scope, subject, owner = account
    measure, window = counted
    name = counter_name(scope, subject, measure, window, wall)

    def made() -> Counter:
        counter = Counter(name, _kind(measure, window), owner, measure, window)
        if window in {"day", "month"}:
            counter.ends = (day_of(wall) if window == "day" else month_of(wall)).end
        return counter

    plan.add(known(name, made), _WHICH[measure], limit)


def _kind(measure: Measure, window: Window) -> Kind:
    if measure == "seconds":
        return "elapsed"
    match window:
        case "minute":
            return "rate"
        case "now":
            return "gauge"
        case "day" | "month" | "task":
            return "total"


def _stricter(one: TaskLimits, other: TaskLimits) -> dict[str, Limit | None]:
    found: dict[str, Limit | None] = {}
    for name in TASK_LIMITS:
        given: list[Limit] = [limit for limit in (getattr(one, name), getattr(other, name)) if limit is not None]
        found[name] = min(given, key=lambda limit: limit.stop) if given else None
    return found
