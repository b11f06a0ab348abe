"""Which counters a call is reserved on: its key's, its tenant's and its task's.

Those of key and tenant are looked up once a day: many tasks have one call alone, and each begins with a plan.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

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


class Terms(Struct, frozen=True):
    """What all calls of a caller are reserved on for one day, whichever task they belong to."""

    common: Plan
    """The counters of its key and of its tenant."""
    task: tuple[tuple[Measure, Window, Limit], ...]
    """What else is counted, for each task by itself."""


def terms_for(caller: Caller, wall: float, known: Callable[[str, Callable[[], Counter]], Counter]) -> Terms:
    """The terms of a caller on the day of ``wall``.

    Args:
        caller: whose limits.
        wall: epoch seconds.
        known: the counter of a name, made by the function given where there is none.
    """
    day = day_of(wall)
    common = Plan(0, caller, day.start, day.end)
    key, tenant = caller.key, caller.tenant
    for scope, account, limits in (("key", key.id, key.limits), ("tenant", tenant.id, tenant.limits)):
        for name, (measure, window) in CALLER_LIMITS.items():
            limit: Limit | None = getattr(limits, name)
            if limit is not None:
                counter_of = _maker(scope, account, f"{scope} {account}", measure, window, wall)
                common.add(known(*counter_of), _WHICH[measure], limit)
    both = _stricter(key.task, tenant.task)
    task = [(*TASK_LIMITS[name], limit) for name, limit in both.items() if limit is not None]
    return Terms(common, tuple(task))


def plan_for(terms: Terms, task: TaskId, number: int, known: Callable[[str, Callable[[], Counter]], Counter]) -> Plan:
    """The plan of a caller's calls in one task.

    Args:
        terms: the caller's.
        task: which one.
        number: what the plan is called.
        known: as for `terms_for`.
    """
    common = terms.common
    plan = Plan(
        number,
        common.caller,
        common.since,
        common.until,
        common.rows.copy(),
        common.warning.copy(),
        common.totals.copy(),
        common.rates.copy(),
        common.gauges.copy(),
    )
    if terms.task:
        account, owner = f"{common.caller.tenant.id}:{task}", f"task {task}"
        for measure, window, limit in terms.task:
            counter_of = _maker("task", account, owner, measure, window, common.since)
            plan.add(known(*counter_of), _WHICH[measure], limit)
    return plan


def _maker(
    scope: str, account: str, owner: str, measure: Measure, window: Window, wall: float
) -> tuple[str, Callable[[], Counter]]:
    """The name of a counter, and what makes it."""
    name = counter_name(scope, account, measure, window, wall)

    def made() -> Counter:
        counter = Counter(name, _kind(measure, window), owner, measure, window)
        if window in {"day", "month"}:
            counter.ends = (day_of(wall) if window == "day" else month_of(wall)).end
        return counter

    return name, made


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
